"""The small files of one worker beside its steps: collections, lost steps, what it ran with, what failed."""

from __future__ import annotations

from collections.abc import Iterator

from smd_agent.formats.paths import about_path, collections_path, failures_path
from smd_agent.storage.lost_steps import LostSteps
from smd_agent.storage.retried_file import RetriedFile


class WorkerFiles:
    """What these files ought to hold, and what they hold.

    Args:
        worker: whose they are.
    """

    def __init__(self, worker: str) -> None:
        self.collections = RetriedFile(collections_path(worker))
        self.lost = LostSteps(worker)
        self.about = RetriedFile(about_path(worker))
        self.failures = RetriedFile(failures_path(worker))

    def __iter__(self) -> Iterator[RetriedFile]:
        return iter((self.collections, self.lost, self.about, self.failures))

    def forget(self) -> None:
        """They are gone with their folder: all are due again."""
        for file in self:
            file.forget()
