"""The number and size of what is in a run's folder."""

from __future__ import annotations

from smd_agent.printable import count_of
from smd_agent.storage.forecast import size_text
from smd_agent.storage.step_file import Growth


class SavedCounts:
    """What one worker has in the run's folder.

    Attributes:
        steps, tensors: how many steps, and values of tensors in them.
        size: of their files, in bytes.
    """

    def __init__(self) -> None:
        self.steps = self.tensors = self.size = 0

    def add(self, growth: Growth) -> None:
        """Count what has been put in place."""
        self.steps += growth.steps
        self.tensors += growth.tensors
        self.size += growth.size

    def forget(self) -> None:
        """There is nothing any more."""
        self.steps = self.tensors = self.size = 0

    def text(self, beside: int, more: str) -> str:
        """What there is, in words; ``beside`` are the bytes of other files, ``more`` follows the size of all."""
        return f"{count_of(self.steps, 'step')} ({self.tensors} values, {size_text(self.size + beside)}{more})"
