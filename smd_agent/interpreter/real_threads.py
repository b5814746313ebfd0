"""Threads of the system in a program that puts others in their place while it runs.

gevent and eventlet replace threads and locks by ones that take turns in a single thread of the system. A thread of ours
that were such a one would never have its turn while the program waits for it by what is not replaced. So what it takes
is kept as it was when this was imported. Where they have come first, everything of ours is theirs, which fits, too.

True of CPython 3.10 to 3.14, and of each interpreter that has ``_thread``. Standard library only.
"""

from __future__ import annotations

import _thread
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_start_new_thread = _thread.start_new_thread
allocate_lock = _thread.allocate_lock
"""Makes a lock."""


class RealThread:
    """A thread of the system that no library knows; it does not keep the program from ending.

    Args:
        target: what it does; lets nothing pass.
        name: of the thread.
    """

    def __init__(self, target: Callable[[], object], name: str) -> None:
        self.name = name
        self._target = target
        self._process = os.getpid()
        self._at_work = allocate_lock()

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: there are as many threads as there may be.
        """
        self._at_work.acquire()
        _start_new_thread(self._run, ())

    def is_alive(self) -> bool:
        """True if it is at work; one of a parent process is not."""
        return self._process == os.getpid() and self._at_work.locked()

    def join(self, timeout: float | None = None) -> None:
        """Wait until it has ended, for so many seconds at most."""
        if self.is_alive() and self._at_work.acquire(timeout=-1 if timeout is None else timeout):
            self._at_work.release()

    def _run(self) -> None:
        try:
            self._target()
        finally:
            self._at_work.release()


def are_replaced() -> bool:
    """True if the program has put other threads in the place of those that were there."""
    return _thread.start_new_thread is not _start_new_thread
