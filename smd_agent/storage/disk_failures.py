"""Lines on a disk that is full, stands still or has lost the folder; the run goes on."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

from smd_agent import guard
from smd_agent.core.failure_domains import failures
from smd_agent.storage.worker_files import RetriedFile

PASSING = frozenset(
    getattr(errno, name, errno.ENOSPC)
    for name in ("ENOSPC", "EDQUOT", "EIO", "ESTALE", "EMFILE", "ENFILE", "ETIMEDOUT")
)
"""What is the matter with a disk that may take data later."""


class Beginning:
    """The outcome of making the folder ready."""

    def __init__(self) -> None:
        self.refused: str | None = None
        self.failure: OSError | None = None
        # Whether nobody waits for it any more.
        self.given_up = False


class DiskFailures:
    """The lines about what could not be written.

    Args:
        root: gives the run's folder, which may become another one.

    Attributes:
        reason: what was the matter the last time; empty if nothing was.
    """

    def __init__(self, root: Callable[[], Path]) -> None:
        self.reason = ""
        self._root = root

    def write_failed(self, error: Exception) -> None:
        """Say that a file could not be written."""
        root = self._root()
        self.reason = getattr(error, "strerror", None) or str(error)
        if not isinstance(error, OSError):
            failures.note("files", "writing", error)
            guard.attempt(failures.changed)
        line = f"cannot write to {root} ({error}): the run goes on, further steps are tried"
        guard.say_once(("failed write", root), line)

    def start_given_up(self) -> None:
        """Say that the disk, standing still, did not let the folder be made."""
        root = self._root()
        guard.say_once(("stalled disk", root), f"{root} does not answer: nothing is saved until it does")

    def start_made_up(self, named: Path, why: str | None) -> None:
        """Say that the folder could be made after all, and why it is not the one that was asked for."""
        root = self._root()
        where = "it" if root == named else f"{root} ({why})"
        guard.say(f"{named} answers again: saving goes on in {where}")

    def step_given_up(self, step: int) -> None:
        """Say that the disk, standing still, had no room for a step."""
        root = self._root()
        guard.say_once(("stalled disk", root), f"{root} takes no more data: step {step} is not saved")

    def end_given_up(self) -> None:
        """Say that the disk stood still when the run ended."""
        guard.say(f"{self._root()} takes no more data: the last steps may be missing")

    def folder_gone(self, root: Path, steps: int, now: Path | None) -> None:
        """Say that a folder went away with so many steps, and where saving goes on; None: nowhere yet."""
        lines = []
        if steps:
            gone = "step saved so far is" if steps == 1 else f"{steps} steps saved so far are"
            lines.append(f"{root} was removed or moved while it was written: the {gone} not there any more")
        if now is not None and (steps or now != root):
            lines.append(f"saving goes on in {now}")
        if lines:
            guard.say("; ".join(lines))

    def look_at(self, collections: RetriedFile) -> None:
        """Say what the collections file lacks at the end of the run, if it could not be written."""
        if collections.failure is None:
            return
        path = self._root() / collections.path
        lacks = "lacks the newest names" if collections.exists else "is missing, which collections there are is unknown"
        line = f"the collections file {path} {lacks} ({collections.failure.strerror})"
        guard.say_once(("no collections", path), line)
