"""A file of the series that grows: rows wait in memory until they are at its end."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from smd_agent.formats.paths import series_path
from smd_agent.formats.series import Header
from smd_agent.storage.after_fork import do_in_children, leave_to_children
from smd_agent.storage.atomic_file import create_file

if sys.platform == "win32":
    fcntl: Any = None
else:
    import fcntl

# Of rows that wait for a disk; then the older ones are dropped.
MOST_WAITING = 4 << 20
# A program that closes all descriptors, and opens files of its own, gets lower numbers than this.
_HIGH = 512
LOOK_SECONDS = 1.0


class SeriesFile:
    """One file. The rows of one layout of a table begin in one, and go on in another where it has gone or is large.

    Of two threads that use it, one is the writer thread, which writes as long as the file is handed over to it. The
    other one holds a lock, and writes at other times.

    Args:
        header: of the file.

    Attributes:
        header: the same.
        name: of the file, below the run's folder; empty as long as there is none.
        size: bytes in the file.
        waiting: rows that are not in it.
        is_quick: whether it is open, on a disk of this machine.
        looked_at: when it was last made sure that the file is there; in seconds since the epoch.
        is_handed: whether the writer thread is to write what waits, and has not yet.
    """

    def __init__(self, header: Header) -> None:
        self.header = header
        self.name = ""
        self.size = 0
        self.waiting = bytearray()
        self.is_quick = False
        self.is_handed = False
        self._descriptor = -1
        self._number = (0, 0)
        self.looked_at = 0.0

    @property
    def is_open(self) -> bool:
        """True if rows can be written."""
        return self._descriptor >= 0

    def trim(self) -> bool:
        """Drop the older half of the rows that wait, if they are too many; True if they were."""
        if len(self.waiting) <= MOST_WAITING:
            return False
        size = self.header.row_bytes
        del self.waiting[: len(self.waiting) // size // 2 * size]
        return True

    def take(self) -> bytearray:
        """The rows that wait; they have to be appended, or given back."""
        rows, self.waiting = self.waiting, bytearray()
        return rows

    def give_back(self, rows: bytearray) -> None:
        """Have rows wait that could not be appended."""
        self.waiting[:0] = rows

    def open(self, root: Path, segment: int, is_quick: bool) -> None:
        """Make the file.

        Args:
            root: the run's folder.
            segment: its number.
            is_quick: whether the folder is on a disk of this machine.

        Raises:
            OSError: that cannot be done.
        """
        name = series_path(self.header.worker, self.header.table, segment)
        self._descriptor = _raised(create_file(root, name))
        do_in_children(self.close)
        try:
            status = os.fstat(self._descriptor)
            self._number = status.st_dev, status.st_ino
            self.name, self.size = name, 0
            self.append(self.header.to_bytes())
            self.is_quick = is_quick
        except BaseException:
            self.close()
            raise

    def append(self, rows: bytes | bytearray) -> None:
        """Put rows, or the header, at the end of the file.

        Raises:
            OSError: that cannot be done; what is there stays.
        """
        written = os.pwrite(self._descriptor, rows, self.size)
        if written < len(rows):
            with suppress(OSError):
                os.ftruncate(self._descriptor, self.size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.name)
        self.size += written

    def append_waiting(self, now: float) -> bool:
        """Put the rows that wait at the end of the file; False if it has gone. ``now`` is in seconds since the epoch.

        Raises:
            OSError: that cannot be done; what is there stays, and the rows wait.
        """
        if not 0 <= now - self.looked_at < LOOK_SECONDS:
            if not self.is_in_place():
                return False
            self.looked_at = now
        rows = self.take()
        try:
            self.append(rows)
        except BaseException:
            self.give_back(rows)
            raise
        return True

    def is_in_place(self) -> bool:
        """True if rows can be written to the file; else it is given up, and rows that follow go into another one.

        It may have been removed. The program may have closed its descriptor, too, and opened a file of its own.
        """
        if self._descriptor < 0:
            return False
        try:
            status = os.fstat(self._descriptor)
        except OSError:
            self._forget()
            return False
        # Some file systems give a file another number each time.
        if status.st_dev != self._number[0] or (status.st_ino != self._number[1] and status.st_size != self.size):
            self._forget()
        elif not status.st_nlink:
            self.close()
        return self.is_open

    def is_below(self, root: Path) -> bool:
        """True if it is there under its name, or not open."""
        if not self.is_open:
            return True
        try:
            return os.path.samestat(os.stat(root / self.name), os.fstat(self._descriptor))
        except OSError:
            return False

    def _forget(self) -> None:
        self._descriptor = -1
        self.is_quick = False
        leave_to_children(self.close)

    def close(self) -> None:
        """Close the file; rows that follow go into another one."""
        descriptor = self._descriptor
        self._forget()
        if descriptor >= 0:
            os.close(descriptor)


def _raised(descriptor: int) -> int:
    """The same file under a high number, where such are allowed."""
    if fcntl is None:
        return descriptor
    try:
        high: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except OSError:
        return descriptor
    os.close(descriptor)
    return high
