"""The time that the agent takes of the program: of preparations and of saved steps, in the thread that trains.

It is told as a share of the time that the process has lived, imports and data included: what a user waits for. In a
step that is not saved no clock is read.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Overhead:
    """Adds up the time of one process.

    Attributes:
        counts: whether functions of the agent are timed now: until the first step is decided about, and in saved steps.
    """

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything, as in a process that a fork has made."""
        self.counts = True
        self._seconds = 0.0
        self._processor_seconds = 0.0
        self._since: float | None = None
        self._asked_at = 0.0, 0.0
        self._inside = False
        self._thread = threading.get_ident()

    def asked(self) -> None:
        """A step is due, which will be opened or not."""
        self._asked_at = _clocks()
        self._thread = threading.get_ident()
        if self._since is None:
            self._since = self._asked_at[0]

    @property
    def seconds(self) -> float:
        """The seconds that were the agent's so far."""
        return self._seconds

    @property
    def processor_seconds(self) -> float:
        """Those of them in which a processor worked for it: on a machine that others use, the smaller part."""
        return self._processor_seconds

    def counted(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return a function that does the same and is timed where that counts; of one in another only the outer."""

        @functools.wraps(function)
        def timed(*args: P.args, **kwargs: P.kwargs) -> R:
            if self._inside or (self.counts and threading.get_ident() != self._thread):
                return function(*args, **kwargs)
            begun = _clocks() if self.counts else None
            self._inside = True
            try:
                return function(*args, **kwargs)
            finally:
                self._inside = False
                if begun is not None:
                    self._add_since(begun)
                elif self.counts:
                    self._add_since(self._asked_at)

        return timed

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Context in which all time is the agent's."""
        begun = _clocks()
        if self._since is None:
            self._since = begun[0]
        outer, self._inside = self._inside, True
        try:
            yield
        finally:
            self._inside = outer
            if not outer:
                self._add_since(begun)

    def _add_since(self, begun: tuple[float, float]) -> None:
        seconds, processor_seconds = _clocks()
        self._seconds += seconds - begun[0]
        self._processor_seconds += processor_seconds - begun[1]

    def took(self, age: Callable[[], float | None]) -> tuple[float, float] | None:
        """Return the seconds that were the agent's, and all that the process has lived; None before a preparation.

        Args:
            age: tells the seconds since the process began. Where it gives None, the first preparation counts as that.
        """
        if self._since is None:
            return None
        known = time.perf_counter() - self._since
        return self._seconds, max(known, age() or 0.0, 1e-9)


def _clocks() -> tuple[float, float]:
    """The time, and that of the processor in this thread; in seconds."""
    return time.perf_counter(), time.thread_time()


overhead = Overhead()
"""That of this process."""
