"""Reader of the small files that workers leave in a run's folder: what they ran with, what failed, and what is lost.

Of each kind there is one file for each worker. What cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from smd_agent.core.failure_record import Failure
from smd_agent.formats.notes import LARGEST_FAILURES, About, Lost, about_of, failures_of, lost_of
from smd_agent.formats.paths import ABOUT_FOLDER, FAILURES_FOLDER, LOST_FOLDER, lost_path
from smd_agent.regular_file import read_text
from smd_agent.storage.atomic_file import remove_file

_LARGEST_ABOUT = 1 << 18
_LARGEST_LOST = 1 << 20


class OfWorker(NamedTuple):
    """A failure in one worker."""

    worker: str
    failure: Failure


def read_failures(root: Path) -> list[OfWorker]:
    """The failures in the workers of a run, in the order of their names."""
    found = notes_in(root / FAILURES_FOLDER, LARGEST_FAILURES)
    return [OfWorker(worker, failure) for worker, text in found for failure in failures_of(text)]


def read_about(root: Path) -> list[About]:
    """With what the workers of a run ran, and what saving took, in the order of their names."""
    found = (about_of(worker, text) for worker, text in notes_in(root / ABOUT_FOLDER, _LARGEST_ABOUT))
    return [one for one in found if one is not None]


def read_lost_steps(root: Path) -> list[Lost]:
    """The losses of the workers of a run, in the order of their names; those that cannot be read are left out."""
    found = (lost_of(worker, text) for worker, text in notes_in(root / LOST_FOLDER, _LARGEST_LOST))
    return [lost for lost in found if lost is not None]


def take_lost_steps(root: Path, worker: str, until: int) -> list[int]:
    """The steps up to this one, of those listed, that a worker could not save; their file is removed.

    Raises:
        OSError: it cannot be removed.
    """
    found = _read(root / lost_path(worker))
    remove_file(root, lost_path(worker))
    return [] if found is None else [step for step in found.steps if step <= until]


def _read(path: Path) -> Lost | None:
    try:
        return lost_of(path.stem, read_text(path, largest=_LARGEST_LOST))
    except (OSError, ValueError):
        return None


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
