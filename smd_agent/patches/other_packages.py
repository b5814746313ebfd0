"""Frameworks of other packages: entry points of the group ``smd_agent.frameworks``, each the module that patches one.

An armed interpreter reads them once, before the first import that is not of the standard library. It reads only files
``entry_points.txt`` of installed packages on ``sys.path``: ``importlib.metadata`` takes longer, and loads modules that
the program may never need.
"""

from __future__ import annotations

import os
import sys

from smd_agent import guard
from smd_agent.patches import FRAMEWORKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP = "smd_agent.frameworks"
_ENDINGS = (".dist-info", ".egg-info")

_was_read = False


def known() -> dict[str, str]:
    """Return the table of frameworks, with those of other packages."""
    global _was_read
    if not _was_read:
        for file, name, module in _entry_points():
            _add(file, name, module)
        _was_read = True
    return FRAMEWORKS


def _add(file: str, name: str, module: str) -> None:
    if not name.isidentifier() or not module:
        guard.say_once((file, name), f"{file}: {name!r} = {module!r} is left out: it names no module")
        return
    present = FRAMEWORKS.setdefault(name, module)
    if present != module:
        guard.say_once((file, name), f"{file}: {name} is left out: it is captured by {present}")


def _entry_points() -> Iterator[tuple[str, str, str]]:
    """File, name and value of each entry point of the group."""
    header = f"[{GROUP}]"
    for folder in dict.fromkeys(sys.path):
        for file in _files(folder):
            try:
                with open(file, "rb") as opened:
                    content = opened.read()
            except OSError:
                continue
            if header.encode() in content:
                for name, value in _lines_below(header, content.decode(errors="replace")):
                    yield file, name, value


def _files(folder: str) -> list[str]:
    try:
        names = os.listdir(folder or ".")
    except OSError:
        # A zip file, or nothing.
        return []
    return [os.path.join(folder, name, "entry_points.txt") for name in names if name.endswith(_ENDINGS)]


def _lines_below(header: str, text: str) -> Iterator[tuple[str, str]]:
    is_below = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            is_below = line == header
        elif is_below and line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()
