"""Frames of the functions that are running (``sys._getframe``).

True of CPython 3.10 to 3.14; other interpreters may lack the function, and what asks for frames fails there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType

# CO_VARARGS, as in inspect, which is large.
_HAS_MORE_ARGUMENTS = 0x04


def callers() -> Iterator[FrameType]:
    """The frames that the function which asks was called from, the nearest first."""
    return _outwards(sys._getframe(1).f_back)


def place(frames: Iterator[FrameType], most: int) -> int:
    """A number for the places where a program is in the first of these frames, ``most`` at most."""
    return hash((*((id(frame.f_code), frame.f_lasti) for frame, _ in zip(frames, range(most), strict=False)),))


def first_argument(frame: FrameType) -> object:
    """The argument that a function was called with first, which is ``self`` in a method; None without one."""
    code = frame.f_code
    if not code.co_argcount and not code.co_flags & _HAS_MORE_ARGUMENTS:
        return None
    return frame.f_locals.get(code.co_varnames[0])


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
