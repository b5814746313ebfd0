"""Event files that are uploaded and still kept here, of a run that goes into a store."""

from __future__ import annotations

from collections import deque
from functools import partial
from pathlib import Path

from smd_agent import guard
from smd_agent.formats import paths
from smd_agent.storage.whole_file import remove_file

# What is kept of them.
KEPT_BYTES = 256 << 20


class KeptEvents:
    """All of them or, of a run that lies here on its way only, the newest.

    Args:
        gives_up: whether older ones are given up.

    Attributes:
        are_all: whether none was given up.
    """

    def __init__(self, gives_up: bool) -> None:
        self.are_all = True
        self._gives_up = gives_up
        self._files: deque[tuple[str, int]] = deque()
        self._bytes = 0

    def add(self, root: Path, step: tuple[int, str], size: int) -> None:
        """Keep the event file of a step and a worker, of so many bytes, as long as not too much comes after it."""
        if not self._gives_up:
            return
        self._files.append((paths.event_path(*step), size))
        self._bytes += size
        while self._bytes > KEPT_BYTES:
            event, size = self._files.popleft()
            self._bytes -= size
            self.are_all = False
            guard.attempt(partial(remove_file, root, event))
            guard.attempt((root / event).parent.rmdir)
