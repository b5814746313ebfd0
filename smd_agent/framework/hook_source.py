"""The one answer to "which hook do I save with?", for every watcher of every framework."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from smd_agent import session
from smd_agent.core.hook import BaseHook

H = TypeVar("H", bound=BaseHook)


class HookSource(Generic[H]):
    """Gives the process's hook if it is one of the framework's, or makes one where there is none.

    Args:
        kind: the framework's class of hooks.
        make: makes a hook, called until it has returned once; None, or its result None: a hook that the script makes is
            waited for.
    """

    def __init__(self, kind: type[H], make: Callable[[], H | None] | None = None) -> None:
        self._kind = kind
        self._make = make

    def hook(self) -> H | None:
        """The hook to save with now; None if there is none of the framework's."""
        existing = session.current_of(self._kind)
        if existing is not None:
            return existing
        if self._make is None:
            return None
        made = self._make()
        # Not before: where making one fails, it is tried again.
        self._make = None
        return made
