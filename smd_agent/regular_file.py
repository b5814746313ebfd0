"""Opens files that somebody else has named or made: never a pipe, which would be waited for, nor a device without end.

Standard library only, and at the very bottom: the boot, the configuration and the readers of a run open files by it.
"""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO

LARGEST_TEXT_BYTES = 1 << 30


class NotARegularFile(OSError):
    """The path names a pipe, a device or a socket."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", path)


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
    return open(path, "rb", buffering=0, opener=_open_without_waiting)


def read_text(path: str | os.PathLike[str], encoding: str = "utf-8", largest: int = LARGEST_TEXT_BYTES) -> str:
    """The whole text of a regular file of at most ``largest`` bytes.

    Raises:
        OSError: it is too large, no regular file, or cannot be read.
        UnicodeDecodeError: it is not text in this encoding.
    """
    with open_to_read(path) as file:
        if os.fstat(file.fileno()).st_size > largest:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fspath(path))
        return file.read().decode(encoding)


def _open_without_waiting(path: str, flags: int) -> int:
    # It may have become a pipe since it was looked at.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
