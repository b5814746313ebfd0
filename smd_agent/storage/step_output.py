"""The event file and the index of one step on the disk, made by the writer thread.

Both appear under temporary names and are renamed, the event file first: an index that can be seen points to a complete
event file. More may come to a step that is in place already: it is made anew, with what it has in front, so that the
old index is right for the new event file, too.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from smd_agent.formats.checksum import crc32c
from smd_agent.storage.whole_file import NewFile, remove_file, replace_file
from smd_agent.storage.writer import Block

# Of one write to the disk: a slow one shall be seen to move.
_PIECE_BYTES = 1 << 20
_WORTHWHILE_BYTES = 1 << 20
_KEEP_SIZE = 1

# Not os.posix_fallocate: where a file system cannot do it, the C library would write the whole range instead.
_fallocate = getattr(ctypes.CDLL(None), "fallocate", None) if sys.platform == "linux" and sys.maxsize > 2**32 else None


class StepOutput:
    """The files of one step, touched by the writer thread alone.

    Args:
        place: gives the run's folder; an OSError says that there is none.
        event, index: names of the files, below that.
        progress: called whenever the disk has taken something.
    """

    def __init__(self, place: Callable[[], Path], event: str, index: str, progress: Callable[[], None]) -> None:
        self._place = place
        self._progress = progress
        self._names = event, index
        self._root: Path | None = None
        self._file: NewFile | None = None
        self._has_event = self._is_in_place = False
        self._size = 0
        self._checksum = 0
        self._failed = False

    def _folder(self) -> Path:
        if self._root is None:
            self._root = self._place()
        return self._root

    def write(self, blocks: list[Block], written: Callable[[Block], None]) -> None:
        """Write blocks to the event file, and give each back to ``written``, whatever becomes of it.

        Raises:
            OSError: that cannot be done.
        """
        pending = blocks[::-1]
        try:
            file = None if self._failed else self._open(sum(block.used for block in blocks))
            while pending:
                if file is not None:
                    self._write(file.descriptor, pending[-1])
                written(pending.pop())
        except BaseException:
            self.abandon()
            for block in pending:
                written(block)
            raise

    def _open(self, size: int) -> NewFile:
        if self._file is None:
            self._file = NewFile(self._folder(), self._names[0])
            if self._has_event:
                self._file.begin_as_before(self._size, self._progress)
        _preallocate(self._file.descriptor, self._size, size)
        self._size += size
        return self._file

    def _write(self, descriptor: int, block: Block) -> None:
        view = block.view
        for start, end in block.checks:
            if end < 0:
                view[start : start + 4] = self._checksum.to_bytes(4, "little")
                self._checksum = 0
            else:
                self._checksum = crc32c(view[start:end], self._checksum)
        written = 0
        while written < block.used:
            written += os.write(descriptor, view[written : min(written + _PIECE_BYTES, block.used)])
            self._progress()

    def commit(self, index: bytes, size: int, done: Callable[[], None], failed: Callable[[], None]) -> None:
        """Put the event file in place, and then its index.

        Args:
            index: its content.
            size: bytes that the event file must have by now.
            done: called when both are in place.
            failed: called when they are not; what is in place from before is left.

        Raises:
            OSError: that cannot be done.
        """
        if self._size != size:
            # Not even the beginning of a write has been reached; the index would name what is not there.
            self.abandon()
        if self._failed:
            failed()
            return
        try:
            if self._file is not None:
                file, self._file = self._file, None
                file.put_in_place()
                self._has_event = True
            replace_file(self._folder(), self._names[1], index)
        except BaseException:
            self.abandon()
            if self._has_event and not self._is_in_place:
                # Without an index nobody finds it.
                with suppress(OSError):
                    remove_file(self._folder(), self._names[0])
            failed()
            raise
        self._is_in_place = True
        done()

    def repeat(self, done: Callable[[], None], failed: Callable[[], None]) -> None:
        """Call ``done`` or ``failed`` as after what was put in place last, to which nothing has come."""
        (failed if self._failed else done)()

    def abandon(self) -> None:
        """Leave no trace of what is not in place."""
        self._failed = True
        if self._file is not None:
            file, self._file = self._file, None
            file.remove()


def _preallocate(descriptor: int, start: int, size: int) -> None:
    """Reserve space for bytes to be written; on ext4 this takes a quarter off the time to write 100 MB.

    A refusal is ignored: the write itself will say what is wrong, if anything is.
    """
    if _fallocate is not None and size >= _WORTHWHILE_BYTES:
        _fallocate(descriptor, _KEEP_SIZE, ctypes.c_int64(start), ctypes.c_int64(size))
