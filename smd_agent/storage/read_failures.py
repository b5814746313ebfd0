"""Reader of what failed of the agent's in a run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from smd_agent.core.failure import Failure
from smd_agent.formats.failures import LARGEST_BYTES, failures_of
from smd_agent.formats.paths import FAILURES_FOLDER
from smd_agent.regular_file import read_text


class OfWorker(NamedTuple):
    """A failure in one worker."""

    worker: str
    failure: Failure


def read_failures(root: Path) -> list[OfWorker]:
    """What failed in the workers of a run, in the order of their names; what cannot be read is left out."""
    folder = root / FAILURES_FOLDER
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return []
    return [OfWorker(Path(name).stem, failure) for name in names for failure in _read(folder / name)]


def _read(path: Path) -> list[Failure]:
    try:
        return failures_of(read_text(path, largest=LARGEST_BYTES))
    except (OSError, ValueError):
        return []
