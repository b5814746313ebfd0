"""The parts of the rows of the series that frameworks share: their fence, their place, and the time of a step."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple, ParamSpec, TypeVar

from smd_agent import guard
from smd_agent.core.clock import RunPosition
from smd_agent.core.failure_domains import SERIES
from smd_agent.core.modes import ModeKeys
from smd_agent.core.ports import StepAside
from smd_agent.formats.series import ABSENT

P = ParamSpec("P")
R = TypeVar("R")

LOSS = "series/loss"
LEARNING_RATE = "series/learning_rate"
SECONDS = "series/seconds"
ONE_BY_ONE: tuple[str, ...] = (LOSS, LEARNING_RATE, SECONDS)
"""The names of a step's numbers where it has no others."""


def fence(doing: str) -> Callable[[Callable[P, R]], Callable[P, R | None]]:
    """``SERIES.fence`` without its clocks, which take as long as what is done in each step."""
    return lambda function: guard.fenced(function, SERIES, doing, None, False)


def series_name(name: str) -> str:
    """The name in the series of a loss or metric that a framework names itself."""
    return f"series/{name}"


class At(NamedTuple):
    """The step of a row."""

    step: int
    mode: ModeKeys
    mode_step: int

    @classmethod
    def current(cls, position: RunPosition | StepAside) -> At:
        """The step that is current, or waits until an evaluation has ended."""
        return cls(position.step, position.clock.mode, position.clock.step)


class StepTime:
    """The time from the end of one step to that of the next."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the last step."""
        self._ended: float | None = None

    def ends(self) -> float:
        """Seconds since the last step has ended, now that one has; ``ABSENT`` of the first one."""
        before, self._ended = self._ended, perf_counter()
        return ABSENT if before is None else self._ended - before

    def take_back(self, seconds: float) -> None:
        """The step that has just ended after so long goes on."""
        if self._ended is not None:
            self._ended -= seconds
