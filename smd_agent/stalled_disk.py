"""A bounded wait for a disk that stands still: half a minute in all for a thread that the program needs, then hardly.

A system call that has to wait for a disk, such as one of a server that is gone, cannot be ended from outside. So it is
made on a thread that may be left behind.
"""

from __future__ import annotations

import errno

from smd_agent import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

STALL_SECONDS = 30.0
# For a disk that has been waited for in vain: it may be moving again just now.
LAST_LOOK_SECONDS = 1.0

# Whether what was waited for in vain still stands still.
_standing: list[Callable[[], bool]] = []


def patience(seconds: float) -> float:
    """The time to wait, in seconds, where nothing else stands still, and where something of this process does."""
    _standing[:] = [stands_still for stands_still in _standing if stands_still()]
    return min(seconds, LAST_LOOK_SECONDS) if _standing else seconds


def waited_in_vain(stands_still: Callable[[], bool]) -> None:
    """Wait hardly for anything as long as this stands still."""
    _standing.append(stands_still)


def in_time(look: Callable[[], T], seconds: float | None = None) -> T:
    """Do something with a disk that may stand still; what comes of it.

    ``seconds`` is how long to wait at most, if it is less than usual.

    Raises:
        TimeoutError: it has not answered.
        Exception: whatever ``look`` raises.
    """
    import threading

    answers: list[T] = []
    failures: list[Exception | None] = []

    def ask() -> None:
        failures.append(guard.attempt(lambda: answers.append(look())))

    thread = threading.Thread(target=ask, name="smd_agent-look", daemon=True)
    if guard.attempt(thread.start) is not None:
        # There are as many threads as there may be.
        return look()
    thread.join(patience(STALL_SECONDS if seconds is None else seconds))
    if not failures:
        waited_in_vain(thread.is_alive)
        raise TimeoutError(errno.ETIMEDOUT, "it does not answer")
    failure = failures[0]
    if failure is not None:
        raise failure
    return answers[0]
