"""Marks for functions that stand between the program and a library: warnings do not count them, tracebacks lose them.

``warnings.warn(..., stacklevel=n)`` counts frames up to the code that a warning is about, and passes over frames of the
import system, which it knows by their file's name: "importlib" and "_bootstrap" are in it (CPython 3.3 to 3.14,
``logging`` since 3.11). An unseen function is given such a name. A step that raises nothing pays nothing for either.
Where names are looked at in another way, a warning is told of our file, and nothing else is different.
"""

from __future__ import annotations

from types import CodeType
from typing import Any, TypeVar

F = TypeVar("F")

# Behind the file's own name, so that a traceback of ours still tells where it is.
MARK = " (unseen, as importlib._bootstrap)"

# By the id of the code as it was compiled, which lives as long as its entry.
_marked: dict[int, tuple[CodeType, CodeType]] = {}


def unseen(function: F) -> F:
    """Mark a function that calls what it stands for; what has no code of Python's is left alone.

    It calls that once, and keeps what that returns in a variable named ``result`` if it has anything to do afterwards;
    see ``error_boundary``.

    Returns:
        The function itself.
    """
    code: Any = getattr(function, "__code__", None)
    if code is not None and not is_unseen(code):
        found = _marked.get(id(code))
        if found is None:
            found = _marked[id(code)] = (code, code.replace(co_filename=code.co_filename + MARK))
        function.__code__ = found[1]  # type: ignore[attr-defined]
    return function


def is_unseen(code: CodeType) -> bool:
    """True if this is the code of an unseen function."""
    return code.co_filename.endswith(MARK)


def leave_traceback(error: BaseException) -> None:
    """Take the frames off an exception's traceback by which it has just come through unseen functions.

    For the outermost of them, which has to ``raise`` it afterwards, with nothing behind the word. CPython 3.10 shows
    that one frame nevertheless.
    """
    own = error.__traceback__
    foreign = own
    while foreign is not None and is_unseen(foreign.tb_frame.f_code):
        foreign = foreign.tb_next
    if own is not None and own is not foreign:
        own.tb_next = foreign
        error.__traceback__ = foreign
