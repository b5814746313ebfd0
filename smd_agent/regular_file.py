"""The gate through which files that somebody else has named or made are read.

Never a pipe, which would be waited for, nor a device without end; never more than is allowed, or than the file has.
Links are followed: runs are kept in stores that are made of them. What they lead to is held to the same rules.

Standard library only, and at the very bottom: the boot, the configuration and the readers of a run open files by it.
"""

from __future__ import annotations

import errno
import os
import stat

from smd_agent.descriptors import open_above

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import BinaryIO

LARGEST_TEXT_BYTES = 1 << 28

# A system call returns less than 2 GiB at once.
_LARGEST_READ = 1 << 30

# What a program puts in its place later, as tests do, is not called.
_open = open


class NotARegularFile(OSError):
    """The path names a pipe, a device or a socket."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", path)


class NotText(OSError):
    """The file is no text in the expected encoding; ``strerror`` says so."""


def open_to_read(path: str | os.PathLike[str]) -> FileIO:
    """Open a regular file for reading bytes, without a buffer.

    Raises:
        NotARegularFile: it is something else, which is not opened.
        OSError: it cannot be opened.
    """
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise NotARegularFile(os.fspath(path))
    return _open(path, "rb", buffering=0, opener=_open_without_waiting)


def read_text(path: str | os.PathLike[str], encoding: str = "utf-8", largest: int = LARGEST_TEXT_BYTES) -> str:
    """The whole text of a regular file of at most ``largest`` bytes.

    Raises:
        NotText: it is not text in this encoding.
        OSError: it is too large, no regular file, or cannot be read.
    """
    with open_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fspath(path))
        try:
            # The file may have grown since it was asked for its size.
            return read_bytes(file, size).decode(encoding)
        except UnicodeDecodeError as error:
            name = encoding.removesuffix("-sig").upper()
            raise NotText(errno.EILSEQ, f"it is not {name} ({error.reason})", os.fspath(path)) from None


def bytes_from(file: FileIO, start: int) -> int:
    """Go to byte ``start`` of a file; return how many bytes there are from it on."""
    left = os.fstat(file.fileno()).st_size - start
    if left > 0:
        file.seek(start)
    return max(left, 0)


def read_bytes(file: BinaryIO, size: int) -> bytes:
    """The next ``size`` bytes of an open file, or what it has of them; the file must be known to be that large.

    Raises:
        OSError: it cannot be read, or there is no memory for so much.
    """
    try:
        # One copy is all that most files take.
        first = file.read(min(size, _LARGEST_READ))
        if len(first) == size or not first:
            return first
        parts, left = [first], size - len(first)
        while left and (part := file.read(min(left, _LARGEST_READ))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    except MemoryError:
        raise OSError(errno.ENOMEM, f"there is no memory for {size} bytes of it", file.name) from None


def _open_without_waiting(path: str, flags: int) -> int:
    # It may have become a pipe since it was looked at.
    return open_above(path, flags | getattr(os, "O_NONBLOCK", 0))
