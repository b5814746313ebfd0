"""A lock around what changes a hook: two trainings may run in one process, and user threads save too."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar


class Lockable(Protocol):
    """Has a lock of its own, which the thread that holds it may take again."""

    @property
    def lock(self) -> threading.RLock:
        """The lock."""


P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=Lockable)


def locked(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Make a method wait for other threads that are in one of the object's methods of this kind.

    For methods of saved steps; it costs a fraction of a microsecond.
    """

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.lock:
            return method(self, *args, **kwargs)

    return call
