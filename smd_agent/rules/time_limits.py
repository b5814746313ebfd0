"""Limits of what is read of a run, where there is little time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class OutOfTime(Exception):
    """There is no time to read further values."""


CLOCK_TIMES = 3
"""How much of the clock's time a task may take: so many times its time of a processor, which others use, too."""


class Stopwatch:
    """How much of its time a task has used, in the thread that makes this.

    The time is that of a processor, so that a task gets as far on a busy machine; and no more than `CLOCK_TIMES` as
    much by the clock, for waiting for a disk or a store takes no time of a processor.

    Args:
        seconds: that the task has.
        clock_times: as above, for what must not be missed.
    """

    def __init__(self, seconds: float, clock_times: float = CLOCK_TIMES) -> None:
        self._seconds = seconds
        self._clock_times = clock_times
        self._processor, self._clock = time.thread_time(), time.monotonic()

    @property
    def used(self) -> float:
        """The part of the time that is over, from 0 on; 1 or more when it is up."""
        if self._seconds <= 0:
            return 1.0
        processor, clock = time.thread_time() - self._processor, time.monotonic() - self._clock
        return max(processor, clock / self._clock_times) / self._seconds


class Limits(NamedTuple):
    """What may be read of a run.

    largest: bytes of a value; larger ones are passed over.
    in_time: tells whether there is time for one more.
    """

    largest: int
    in_time: Callable[[], bool]

    def check(self) -> None:
        """Go on as long as there is time.

        Raises:
            OutOfTime: there is none left.
        """
        if not self.in_time():
            raise OutOfTime
