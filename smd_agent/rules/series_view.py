"""The series of one worker as a rule sees it: the courses of a few numbers over all training steps, saved or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from smd_agent.core.modes import ModeKeys
from smd_agent.rules.step_view import Place

if TYPE_CHECKING:
    from smd_agent.analysis.series import SeriesTable

LOSS = "series/loss"
LEARNING_RATE = "series/learning_rate"
GRADIENT, UPDATE = "series/gradient_l2", "series/update_l2"
NORMS = (GRADIENT, UPDATE)

_SKIPPED = "series/skipped"
_MODES = (ModeKeys.TRAIN, ModeKeys.GLOBAL)


@dataclass(frozen=True)
class Course:
    """A number over those steps of one mode that have it, in order.

    Attributes:
        name: of the number.
        mode: of the steps.
        worker: who has noted it.
        steps: as the mode counts them.
        global_steps: the same, counted over all modes.
        values: one for each step, which may be NaN.
        skipped: whether a loss scaler has left out the update of the step.
    """

    name: str
    mode: ModeKeys
    worker: str
    steps: npt.NDArray[np.int64]
    global_steps: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    skipped: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.values)

    def place(self, row: int) -> Place:
        """The step of a row; those from the end on are negative."""
        return Place(int(self.steps[row]), int(self.global_steps[row]), self.mode, self.worker)

    @property
    def finite(self) -> Course:
        """The same without the steps at which the number is NaN or infinite."""
        return self.where(np.isfinite(self.values))

    def before(self, row: int | np.int64) -> Course:
        """The same at the steps before a row."""
        return self.where(np.arange(len(self)) < row)

    def where(self, rows: npt.NDArray[np.bool_]) -> Course:
        """The same at some of the steps."""
        if rows.all():
            return self
        own = (self.steps, self.global_steps, self.values, self.skipped)
        return Course(self.name, self.mode, self.worker, *(array[rows] for array in own))  # type: ignore[arg-type]

    def not_finite(self) -> npt.NDArray[np.int64]:
        """The rows at which the number is NaN or infinite.

        A loss scaler that leaves out the update finds a smaller scale, so that such a step counts only where the number
        stays so to the end.
        """
        bad = ~np.isfinite(self.values)
        if bad.any() and not bad[-1]:
            bad &= ~self.skipped
        return np.flatnonzero(bad)


def longest_row(holds: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """The first of the longest row of steps at which something holds, and how many these are."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], holds.astype(np.int8), [0]])))
    counts = edges[1::2] - edges[::2]
    place = int(np.argmax(counts)) if counts.size else 0
    return (int(edges[2 * place]), int(counts[place])) if counts.size else (0, 0)


def last_row(holds: npt.NDArray[np.bool_]) -> int:
    """The row from which on something holds to the end; as many as there are where it does not hold at the last one."""
    others = np.flatnonzero(~holds)
    return int(others[-1]) + 1 if others.size else 0


class SeriesView:
    """The training steps of one worker's series.

    Args:
        worker: who has noted them.
        table: with a row for each step.
        kept: training steps of whose losses it can be told where they come from, and what tells it, in words.

    Attributes:
        worker, table, kept: the same.
    """

    def __init__(self, worker: str, table: SeriesTable, kept: Mapping[int, str] = MappingProxyType({})) -> None:
        self.worker = worker
        self.table = table
        self.kept = kept
        self._rows = {mode: rows for mode in _MODES if (rows := table.modes == mode.value).any()}

    def courses(self, name: str) -> Iterator[Course]:
        """Yield the courses of a number, one for each mode in which it was noted."""
        table = self.table
        if name not in table:
            return
        known = table.is_there(name)
        skipped = table[_SKIPPED] == 1 if _SKIPPED in table else np.zeros(len(known), bool)
        for mode, rows in self._rows.items():
            own = rows & known
            if own.any():
                yield Course(
                    *(name, mode, self.worker, table.mode_steps[own]),
                    *(table.steps[own], table[name][own], skipped[own]),
                )

    def course(self, name: str, mode: ModeKeys) -> Course | None:
        """Return the course of a number in one mode; None where there is none."""
        return next((one for one in self.courses(name) if one.mode is mode), None)
