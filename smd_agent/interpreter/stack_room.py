"""Room on Python's stack: a training that runs next to the recursion limit keeps what is left for itself.

A function of ours that stands around one of the program's takes a place on the stack, and what it computes takes more
for a while. Asking takes microseconds: it is done in steps that are saved.

True of CPython 3.10 to 3.14, in which each Python function that is running counts as one place. Where the limit is
another, or none, there is always room.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Lock

from smd_agent import guard

# What saving takes, and what the program may need by itself below our functions.
_ROOM = 100
_LITTLE = (
    f"the training runs within {_ROOM} calls of sys.getrecursionlimit(): what is computed there is not saved, so that "
    "the program has its stack for itself"
)

# Held while the limit is raised.
_raised = Lock()


def has_room() -> bool:
    """True if there is room for functions of ours around what the program calls; a line says where there is none."""
    found = _finds_room()
    if not found:
        guard.say_later("recursion limit", _LITTLE)
    return found


def in_room(function: Callable[..., object], *args: object) -> None:
    """Call a function of ours, which calls none of the program's; without room, the limit is raised for it."""
    if _finds_room() or not _raised.acquire(blocking=False):
        function(*args)
        return
    before = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(before + _ROOM)
        function(*args)
    finally:
        # Else the program has set another one meanwhile, in another thread.
        if sys.getrecursionlimit() == before + _ROOM:
            sys.setrecursionlimit(before)
        _raised.release()


def _finds_room() -> bool:
    try:
        _descend(_ROOM)
    except Exception as error:
        # Not by ``guard.attempt``, which takes a place more on the stack. Only this error says that there is no room.
        if guard.is_foreign(error):
            raise
        return not isinstance(error, RecursionError)
    return True


def _descend(calls: int) -> None:
    if calls:
        _descend(calls - 1)
