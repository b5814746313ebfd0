"""Base of the saved step of every framework: what is installed while it is open, and how its tensors are numbered."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from smd_agent.core.failure_domains import STEPS
from smd_agent.core.ports import StepWriter
from smd_agent.framework.replaced_functions import Make, Patch, Until

SaveIO = Callable[[str, str, Any], object]
"""Saves the tensors of a layer's "input" or "output": called with its name, the kind and the value."""


class Installed:
    """Changes to a framework that are undone together, the last one first.

    Attributes:
        patch_class: what ``patch`` makes; a framework may need a patch of its own.
    """

    patch_class: ClassVar[type[Patch]] = Patch

    def __init__(self) -> None:
        # A list, because a saved step makes some thirty changes, and ExitStack takes ten times as long for each.
        self._undo: list[Callable[[], object]] = []

    def on_close(self, undo: Callable[[], object]) -> None:
        """Call this when everything is undone."""
        self._undo.append(undo)

    def patch(self, owner: Any, name: str, make: Make, *, why: str, until: Until = Until.STEP_CLOSES) -> None:
        """Replace a function by what ``make`` makes of it."""
        self._undo.append(self.patch_class(owner, name, make, why=why, until=until).remove)

    def close(self) -> None:
        """Undo everything. Repeating it is harmless."""
        while self._undo:
            STEPS.always("undoing what a step has installed", self._undo.pop())


class CapturedStep:
    """One step that is being saved.

    Args:
        writer: takes the step's values.

    Attributes:
        writer: the same.
        installed: what is undone when the step closes.
    """

    installed_class: ClassVar[type[Installed]] = Installed

    def __init__(self, writer: StepWriter) -> None:
        self.writer = writer
        self.installed = self.installed_class()
        self.counts: dict[str, int] = {}

    def drop(self) -> None:
        """Undo what was installed, and save nothing more."""
        self.installed.close()

    def save_numbered(self, base: str, values: Iterable[Any]) -> None:
        """Save values as ``<base>_<i>``, numbered over the whole step."""
        for value in values:
            self.writer.save_tensors((f"{base}_{self.next_number(base)}",), (value,))

    def next_number(self, base: str) -> int:
        """Number of tensors of this base name that the step has had so far; the next call counts one more."""
        number = self.counts.get(base, 0)
        self.counts[base] = number + 1
        return number
