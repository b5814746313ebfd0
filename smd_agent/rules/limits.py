"""Limits of what is read of a run, where there is little time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class OutOfTime(Exception):
    """There is no time to read further values."""


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
