"""Lines of the program: where it computes a loss, calls a model, or has an optimizer update.

``line/<what>`` is JSON text, ``[file, number, source]``, of what has facts ``usage/<what>/<fact>``. It is saved with
the first of these, and again when it is another line, as in a second training. The line is that of the innermost frame
that belongs to no library.
"""

from __future__ import annotations

import ast
import inspect
import json
import linecache
import os
import sysconfig
import textwrap
import tokenize
from collections.abc import Iterable
from types import CodeType, FrameType

_LONGEST = 200
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INSTALLED = tuple(os.sep + name + os.sep for name in ("site-packages", "dist-packages"))
_PYTHONS = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})


def line_in(frames: Iterable[FrameType]) -> str | None:
    """The text of the first frame's line that is one of the program's, the innermost first; None without one."""
    found = ((frame.f_code.co_filename, frame.f_lineno) for frame in frames)
    return next((line_at(file, number) for file, number in found if is_programs(file)), None)


def line_at(file: str, number: int) -> str:
    """The text of a line."""
    return json.dumps([file, number, linecache.getline(file, number).strip()[:_LONGEST]])


def is_programs(file: str) -> bool:
    """True if a file belongs to no library."""
    # What has no file is made by a library, but for the cells of a notebook.
    if file.startswith("<"):
        return file.startswith("<ipython-")
    is_librarys = file.startswith((_HERE, *_PYTHONS)) or any(name in file for name in _INSTALLED)
    return not is_librarys


def source_of(code: CodeType) -> tuple[ast.Module, int] | None:
    """The parsed source of some code, and the number of its first line; None where that is not to be had.

    ``inspect`` would ask each imported module for its file, and some of them import others when they are asked.
    """
    lines, first = linecache.getlines(code.co_filename), max(code.co_firstlineno, 1)
    try:
        if code.co_name == "<module>":
            return ast.parse("".join(lines)), 1
        return ast.parse(textwrap.dedent("".join(inspect.getblock(lines[first - 1 :])))), first
    except (SyntaxError, ValueError, tokenize.TokenError):
        return None
