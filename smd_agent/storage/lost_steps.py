"""Steps that a worker could not save, noted in the run's folder: the file is there only if something was lost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from smd_agent.formats.paths import LOST_FOLDER, lost_path
from smd_agent.regular_file import read_text
from smd_agent.storage.retried_file import RetriedFile
from smd_agent.storage.whole_file import remove_file
from smd_agent.storage.worker_notes import notes_in

# So many steps are listed by their numbers; the rest is counted.
_LISTED = 1000
_LARGEST_BYTES = 1 << 20


class LostSteps(RetriedFile):
    """The file of the steps that one worker could not save.

    Attributes:
        steps: global steps; any thread may add one.
        gone: how many steps were in a folder that was removed or moved.
        reason: what was the matter, as far as it is known.
    """

    def __init__(self, worker: str) -> None:
        super().__init__(lost_path(worker))
        self.steps: list[int] = []
        self.gone = 0
        self.reason = ""
        self._noted = (0, 0)

    @property
    def due(self) -> bool:
        """Whether there is something that the file does not say yet."""
        now = (len(self.steps), self.gone)
        if now != self._noted:
            self._noted = now
            fields = {"count": now[0], "gone": now[1], "steps": self.steps[:_LISTED], "reason": self.reason}
            self.text = json.dumps(fields)
        return super().due

    @property
    def words(self) -> str:
        """What was lost, to be put behind what was saved; empty if nothing was."""
        lost = f"; {len(self.steps)} could not be written" if self.steps else ""
        if self.gone:
            lost += f"; {self.gone} more {'are gone with their' if self.gone > 1 else 'is gone with its'} folder"
        return lost


@dataclass(frozen=True)
class Lost:
    """What the folder of a run says that a worker could not save; see ``LostSteps``."""

    worker: str
    count: int
    gone: int
    steps: tuple[int, ...]
    reason: str


def read_lost_steps(root: Path) -> list[Lost]:
    """What the workers of a run could not save, in the order of their names; what cannot be read is left out."""
    found = (parse_lost_steps(worker, text) for worker, text in notes_in(root / LOST_FOLDER, _LARGEST_BYTES))
    return [lost for lost in found if lost is not None]


def take_lost_steps(root: Path, worker: str, until: int) -> list[int]:
    """The steps up to this one, of those listed, that a worker could not save; their file is removed.

    Raises:
        OSError: it cannot be removed.
    """
    found = _read(root / lost_path(worker))
    remove_file(root, lost_path(worker))
    return [] if found is None else [step for step in found.steps if step <= until]


def parse_lost_steps(worker: str, text: str | bytes) -> Lost | None:
    """Read the text of a worker's file; None if it is none."""
    try:
        fields: dict[str, Any] = json.loads(text)
        steps = tuple(int(step) for step in fields["steps"])
        count, gone = int(fields["count"]), int(fields["gone"])
        return Lost(worker, count, gone, steps, str(fields["reason"]))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def _read(path: Path) -> Lost | None:
    try:
        return parse_lost_steps(path.stem, read_text(path, largest=_LARGEST_BYTES))
    except (OSError, ValueError):
        return None
