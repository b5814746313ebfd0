"""Times of steps, and pauses: short steps that have no row, in which no updates, passes and clipping are told of."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from smd_agent.core.budget import SHARE, Rests
from smd_agent.formats.series import ABSENT
from smd_agent.pytorch.optimizer_watch import updates
from smd_agent.pytorch.series.clip_norms import clipping
from smd_agent.pytorch.series.roots import passes

if TYPE_CHECKING:
    from typing import Any


class StepTimes:
    """The times of one hook's steps, and the pauses between its rows."""

    def __init__(self) -> None:
        self._rests = Rests(SHARE / 2)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the time of the last step and the pause."""
        self._ended: float | None = None
        self._paused = 0
        # What a step of the last pause took.
        self._seconds = 0.0

    def step_ends(self) -> float:
        """Seconds since the end of the step before; absent for the first one, and after a pause that was broken off."""
        before, self._ended = self._ended, perf_counter()
        broken_off, self._paused = self._paused > 0, 0
        return ABSENT if before is None or broken_off else self._ended - before

    def take_back(self, seconds: float) -> None:
        """The step that has just ended after so long goes on."""
        self._ended = None if self._ended is None else self._ended - seconds

    def pause(self, listener: Any, seconds: float) -> None:
        """Begin a pause after a row, if there is to be one; ``seconds``: that the step of the row took."""
        before, self._seconds = self._seconds, 0.0
        count = self._rests.after(seconds, before)
        if count and updates.listener is listener:
            self._paused = count
            updates.pause(count)
            passes.listener = clipping.listener = None

    def go_on(self, listener: Any) -> None:
        """End the pause, as its last step has ended."""
        passes.listener = clipping.listener = listener
        count, self._paused = self._paused, 0
        lasted = self.step_ends()
        self._seconds = 0.0 if lasted is ABSENT else lasted / count
