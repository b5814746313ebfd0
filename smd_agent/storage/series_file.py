"""A file of the series that grows: rows wait in memory until they are at its end."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from smd_agent.formats.paths import series_path
from smd_agent.formats.series import Header
from smd_agent.storage.after_fork import do_in_children, leave_to_children
from smd_agent.storage.atomic_file import create_file

# Of rows that wait for a disk; then the older ones are dropped.
MOST_WAITING = 1 << 20


class SeriesFile:
    """One file. The rows of one layout of a table begin in one, and go on in another where it has gone or is large.

    Rows may come from one thread while another writes: who calls ``add`` and ``take`` holds one lock. No two write.

    Args:
        header: of the file.

    Attributes:
        header: the same.
        name: of the file, below the run's folder; empty as long as there is none.
        size: bytes in the file.
        waiting: rows that are not in it.
        dropped: how many rows found no room to wait.
        has_gone: whether it is to be closed by the thread that is writing to it.
    """

    def __init__(self, header: Header) -> None:
        self.header = header
        self.name = ""
        self.size = 0
        self.waiting = bytearray()
        self.dropped = 0
        self.has_gone = False
        self._descriptor = -1
        self._number = (0, 0)

    @property
    def is_open(self) -> bool:
        """True if rows can be written."""
        return self._descriptor >= 0

    def add(self, row: bytes) -> None:
        """Have a row wait."""
        self.waiting.extend(row)
        if len(self.waiting) > MOST_WAITING:
            rows = len(self.waiting) // len(row) // 2
            del self.waiting[: rows * len(row)]
            self.dropped += rows

    def take(self) -> bytearray:
        """The rows that wait; they have to be written, or given back."""
        rows, self.waiting = self.waiting, bytearray()
        return rows

    def give_back(self, rows: bytearray) -> None:
        """Have rows wait that could not be written."""
        rows.extend(self.waiting)
        self.waiting = rows

    def open(self, root: Path, segment: int) -> None:
        """Make the file.

        Args:
            root: the run's folder.
            segment: its number.

        Raises:
            OSError: that cannot be done.
        """
        name = series_path(self.header.worker, self.header.table, segment)
        self._descriptor = create_file(root, name)
        do_in_children(self.close)
        try:
            status = os.fstat(self._descriptor)
            self._number = status.st_dev, status.st_ino
            self.name, self.size = name, 0
            self.append(self.header.to_bytes())
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

    def _forget(self) -> None:
        self._descriptor = -1
        leave_to_children(self.close)

    def close(self) -> None:
        """Close the file; rows that follow go into another one."""
        descriptor, self._descriptor = self._descriptor, -1
        leave_to_children(self.close)
        if descriptor >= 0:
            os.close(descriptor)
