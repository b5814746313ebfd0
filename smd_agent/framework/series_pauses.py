"""Pauses between the rows of the series: short steps that have none, which are counted or nobody is told of."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any, Generic, Protocol, TypeVar

from smd_agent.core.budget import SHARE, Rests
from smd_agent.formats.series import ABSENT
from smd_agent.framework.series_rows import StepTime


class Paused(Protocol):
    """Is told of what a program does, but for pauses."""

    def rested(self) -> None:
        """The next update is told of again; the last one that was not has ended a step."""


L = TypeVar("L", bound=Paused)


class ToldUpdates(Generic[L]):
    """Updates that a listener is told of.

    Attributes:
        listener: is told of updates; None if nobody wants that.
        rest: how many updates it is not told of, before it is again.
    """

    def __init__(self) -> None:
        self.listener: L | None = None
        self.rest = 0
        self._resting: L | None = None

    def tell(self, listener: L) -> None:
        """Tell this one, and no other, from now on."""
        self.listener, self.rest, self._resting = listener, 0, None

    def pause(self, count: int) -> None:
        """Tell the listener of so many updates nothing, and then that this is over."""
        self.listener, self._resting, self.rest = None, self.listener, count

    def count_rest(self) -> None:
        """An update of a pause has ended a step."""
        self.rest -= 1
        if not self.rest:
            self.go_on()

    def go_on(self) -> None:
        """End the pause."""
        self.listener, self._resting, self.rest = self._resting, None, 0
        if self.listener is not None:
            self.listener.rested()


class StepTimes(StepTime):
    """The times of one hook's steps, and the pauses between its rows.

    Args:
        updates: end the steps.
        beside: what else tells a listener, and pauses with the updates.
        budget: part of the run's time that the series may take.
    """

    def __init__(self, updates: ToldUpdates[Any], beside: Iterable[Any], budget: float) -> None:
        self._updates, self._beside = updates, (*beside,)
        # Norms have their part, and the steps of a pause are counted.
        self._rests = Rests(budget / 4)
        super().__init__()

    def begin_anew(self) -> None:
        """Forget the time of the last step and the pause."""
        super().begin_anew()
        self._paused = 0
        # What a step of the last pause took.
        self.seconds = 0.0

    def ends(self) -> float:
        """Seconds from the end of the last step; ``ABSENT`` of the first one, and after a pause that was broken off."""
        lasted = super().ends()
        broken_off, self._paused = self._paused > 0, 0
        return ABSENT if broken_off else lasted

    def pause(self, listener: Any, seconds: float, own: float = 0.0) -> None:
        """Begin a pause after a row, if there is to be one.

        Args:
            listener: is told of nothing in a pause.
            seconds: that the step of the row took.
            own: that the row took, as far as that is known.
        """
        before, self.seconds = self.seconds, 0.0
        count = self._rests.after(seconds, before, own)
        if count and self._updates.listener is listener:
            self._paused = count
            self._updates.pause(count)
            for one in self._beside:
                one.listener = None

    def go_on(self, listener: Any) -> None:
        """End the pause, as its last step has ended."""
        for one in self._beside:
            one.listener = listener
        count, self._paused = self._paused, 0
        lasted = self.ends()
        self.seconds = 0.0 if lasted is ABSENT else lasted / count


class StepsAtRest:
    """The steps of a run between two rows, which have none.

    Args:
        budget: part of the run's time that the series may take.

    Attributes:
        left: how many of them are yet to end.
    """

    def __init__(self, budget: float = SHARE) -> None:
        self.left = 0
        # What a row does to the step after it is as much as what it takes itself.
        self._rests = Rests(budget / 2)
        self._count = 0
        # What one of them took before, and when it was looked at the clock last.
        self._took = self._looked_at = 0.0

    def begin_anew(self) -> None:
        """Other steps begin, the first of which has a row."""
        self.left, self._looked_at = 0, 0.0

    def passes(self) -> None:
        """One of them has ended."""
        self.left -= 1
        if not self.left:
            before, self._looked_at = self._looked_at, perf_counter()
            self._took = (self._looked_at - before) / self._count

    def begin(self) -> None:
        """A step has ended, and its row was taken."""
        before, self._looked_at = self._looked_at, perf_counter()
        if before:
            took, self._took = self._took, 0.0
            self._count = self.left = self._rests.after(self._looked_at - before, took)
