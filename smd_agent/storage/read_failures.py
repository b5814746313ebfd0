"""Reader of what failed of the agent's in a run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from smd_agent.core.failure import Failure
from smd_agent.formats.failures import LARGEST_BYTES, failures_of
from smd_agent.formats.paths import FAILURES_FOLDER
from smd_agent.storage.worker_notes import notes_in


class OfWorker(NamedTuple):
    """A failure in one worker."""

    worker: str
    failure: Failure


def read_failures(root: Path) -> list[OfWorker]:
    """What failed in the workers of a run, in the order of their names; what cannot be read is left out."""
    found = notes_in(root / FAILURES_FOLDER, LARGEST_BYTES)
    return [OfWorker(worker, failure) for worker, text in found for failure in failures_of(text)]
