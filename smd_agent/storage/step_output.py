"""The bytes of one step in memory, and its event file and index on the disk, made of them by the writer thread.

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
from functools import partial
from pathlib import Path

from smd_agent.formats.checksum import crc32c
from smd_agent.formats.event_encoder import CHECKSUM_KEY, TAIL_BYTES, tail
from smd_agent.storage.atomic_file import NewFile, remove_file, replace_file
from smd_agent.storage.writer_thread import BLOCK_BYTES, DEFAULT_BUDGET_BYTES, Block, Bytes, Writer, copy_large

# Up to this size the training thread checksums a record while it is in its cache; beyond, the writer thread does.
INLINE_BYTES = 65536

# So many blocks are handed over before the step is complete.
HELD_BLOCKS = DEFAULT_BUDGET_BYTES // BLOCK_BYTES // 2

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


class StepBytes:
    """The bytes of one step's event file on their way through blocks, appended by the training thread.

    Args:
        output: takes full blocks, on the writer thread.
        writer: has that thread, and empty blocks.

    Attributes:
        lost: the disk stands still, and what is appended is not kept.
        size: bytes so far.
    """

    def __init__(self, output: StepOutput, writer: Writer) -> None:
        self.lost = False
        self.size = 0
        self._output = output
        self._writer = writer
        self._block: Block | None = None
        self._full: list[Block] = []
        self._held = min(HELD_BLOCKS, writer.blocks // 2)
        # Where the last whole record ends: bytes so far, the block, and how much of it is used.
        self._end: tuple[int, Block | None, int, int] = (0, None, 0, 0)

    @property
    def position(self) -> int:
        """The place in its block at which the next byte will be."""
        return 0 if self._block is None else self._block.used

    def note_end(self) -> None:
        """Note that a record is whole."""
        block = self._block
        self._end = (self.size, block, 0, 0) if block is None else (self.size, block, block.used, len(block.checks))

    def begin(self) -> int:
        """The place at which the next record begins; what is left of one whose adding has failed is taken back."""
        size, block, used, checks = self._end
        if self._block is not block or (block is not None and block.used != used):
            self._take_back(size, block, used, checks)
        return self.size

    def _take_back(self, size: int, block: Block | None, used: int, checks: int) -> None:
        left = self._block
        if left is not None and block is None and self.size - size <= left.used and not self._full:
            # It was the first one in a new block.
            used = checks = 0
        elif left is not block or left is None:
            # A part of it is on its way to the disk, or there is none.
            self.lost = self.lost or (left is not block and self.size != size)
            return
        left.used = used
        del left.checks[checks:]
        self.size = size

    def append_small(self, head: bytes, values: Bytes, end: bytes) -> None:
        """Copy a record that mostly fits into the block that is open."""
        block = self._block
        total = len(head) + values.nbytes + len(end)
        if block is None or BLOCK_BYTES - block.used < total:
            for part in (head, values, end):
                self.append(part)
            return
        first = block.used + len(head)
        last = first + values.nbytes
        block.view[block.used : first] = head
        block.view[first:last] = values.data
        block.used += total
        block.view[last : block.used] = end
        self.size += total

    def append(self, source: bytes | Bytes, skip: int | None = None) -> None:
        """Copy bytes into blocks; with ``skip`` given, all but the first ``skip`` join the running checksum."""
        total = len(source)
        done = 0
        while done < total:
            block = self._room()
            if block is None:
                return
            step = min(BLOCK_BYTES - block.used, total - done)
            end = block.used + step
            part = source if step == total else source[done : done + step]
            if isinstance(part, bytes):
                block.view[block.used : end] = part
            elif step > INLINE_BYTES:
                copy_large(block.data[block.used : end], part)
            else:
                block.data[block.used : end] = part
            if skip is not None and done + step > skip:
                block.checks.append((block.used + max(0, skip - done), end))
            block.used = end
            done += step
        self.size += total

    def append_open_tail(self) -> None:
        """Leave room for what stands behind a tensor's values, in which the writer thread puts their checksum."""
        if self._block is not None and BLOCK_BYTES - self._block.used < TAIL_BYTES:
            self._set_aside()
        block = self._room()
        if block is not None:
            block.checks.append((block.used + len(CHECKSUM_KEY), -1))
            self.append(tail(0))

    def _room(self) -> Block | None:
        if self.lost:
            return None
        if self._block is not None and self._block.used == BLOCK_BYTES:
            self._set_aside()
        if self._block is None:
            self._block = self._writer.take_block()
            self.lost = self._block is None
        return self._block

    def _set_aside(self) -> None:
        if self._block is not None:
            self._full.append(self._block)
            self._block = None
            if len(self._full) >= self._held:
                self._hand_over()

    def _hand_over(self) -> None:
        if self._full:
            self._writer.submit(partial(self._output.write, self._full, self._writer.written))
            self._full = []

    def hand_over_all(self) -> None:
        """Hand all that there is to the writer thread."""
        self._set_aside()
        self._hand_over()

    def commit(self, index: bytes | None, done: Callable[[], None], failed: Callable[[], None]) -> None:
        """Have the files put in place; see ``StepOutput``. ``index`` is None if nothing has come to them."""
        if index is None:
            self._writer.submit(partial(self._output.repeat, done, failed))
        else:
            self._writer.submit(partial(self._output.commit, index, self.size, done, failed))

    def abandon(self) -> None:
        """Leave no trace of what is not in place."""
        for block in self._full:
            self._writer.give_back(block)
        self._writer.submit(self._output.abandon)


def _preallocate(descriptor: int, start: int, size: int) -> None:
    """Reserve space for bytes to be written; on ext4 this takes a quarter off the time to write 100 MB.

    A refusal is ignored: the write itself will say what is wrong, if anything is.
    """
    if _fallocate is not None and size >= _WORTHWHILE_BYTES:
        _fallocate(descriptor, _KEEP_SIZE, ctypes.c_int64(start), ctypes.c_int64(size))
