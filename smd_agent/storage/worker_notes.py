"""Reader of the small files that workers leave in a run's folder: what they ran with, and what failed.

Of each kind there is one file for each worker. What cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from smd_agent.core.failure import Failure
from smd_agent.formats.about import About, about_of
from smd_agent.formats.failures import LARGEST_BYTES, failures_of
from smd_agent.formats.paths import ABOUT_FOLDER, FAILURES_FOLDER
from smd_agent.regular_file import read_text

_LARGEST_ABOUT = 1 << 18


class OfWorker(NamedTuple):
    """A failure in one worker."""

    worker: str
    failure: Failure


def read_failures(root: Path) -> list[OfWorker]:
    """What failed in the workers of a run, in the order of their names."""
    found = notes_in(root / FAILURES_FOLDER, LARGEST_BYTES)
    return [OfWorker(worker, failure) for worker, text in found for failure in failures_of(text)]


def read_about(root: Path) -> list[About]:
    """With what the workers of a run ran, and what saving took, in the order of their names."""
    found = (about_of(worker, text) for worker, text in notes_in(root / ABOUT_FOLDER, _LARGEST_ABOUT))
    return [one for one in found if one is not None]


def notes_in(folder: Path, largest: int) -> Iterator[tuple[str, str]]:
    """Yield worker and text of each file, in the order of their names; what cannot be read is left out.

    Args:
        folder: that has them; it need not be there.
        largest: in bytes, of a file that is read.
    """
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return
    for name in names:
        try:
            text = read_text(folder / name, largest=largest)
        except (OSError, ValueError):
            continue
        yield Path(name).stem, text
