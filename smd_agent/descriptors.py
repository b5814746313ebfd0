"""Descriptors of files that the agent opens in a program: never those of the program's standard streams.

Where a program has closed one of these, the next file that anybody opens gets its number, and what a C library writes
to it lands in that file. What a program puts in the place of ``os.open`` later, as tests do, is not called.

Standard library only.
"""

from __future__ import annotations

import os
from os import close, dup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

_open = os.open
_STREAMS = (0, 1, 2)
_CANNOT_BE_WRITTEN: int | None = getattr(os, "O_PATH", None)


def open_above(path: str | PathLike[str], flags: int, mode: int = 0o777, dir_fd: int | None = None) -> int:
    """Open a file as ``os.open`` does, under a number that no standard stream has.

    Raises:
        OSError: it cannot be opened.
    """
    held = _held_streams()
    try:
        return above_streams(_open(path, flags, mode, dir_fd=dir_fd))
    finally:
        for number in held:
            close(number)


def _held_streams() -> list[int]:
    """Numbers of closed streams, held by what cannot be read or written, so that no file gets them meanwhile."""
    held: list[int] = []
    while _CANNOT_BE_WRITTEN is not None:
        number = _open("/", _CANNOT_BE_WRITTEN)
        if number not in _STREAMS:
            close(number)
            break
        held.append(number)
    return held


def above_streams(descriptor: int) -> int:
    """The same open file under a number that no standard stream has; the descriptor given is closed if it has one.

    Raises:
        OSError: there are as many open files as there may be.
    """
    taken = []
    try:
        while descriptor in _STREAMS:
            taken.append(descriptor)
            descriptor = dup(descriptor)
    finally:
        for number in taken:
            close(number)
    return descriptor
