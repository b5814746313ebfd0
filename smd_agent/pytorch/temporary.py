"""Attributes replaced for a while: put in place when a step that is saved opens, put back when it closes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smd_agent.pytorch.patch import Patch


class Temporary:
    """A stack of changes to undo."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def on_close(self, undo: Callable[[], object]) -> None:
        """Call this when everything is undone."""
        self._undo.append(undo)

    def close(self) -> None:
        """Undo everything, the last change first."""
        while self._undo:
            self._undo.pop()()

    def wrap(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replace a function by what ``make`` makes of it."""
        self._undo.append(Patch(owner, name, make).remove)
