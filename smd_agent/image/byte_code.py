"""Byte code of the package and its libraries: without it, each start compiles them where nothing can be written."""

from __future__ import annotations

import os
import py_compile
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path

import smd_agent
from smd_agent.image.within import LIBRARIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Flags in a file's head: it is checked by the source's content, and whether it is checked at all.
_BY_CONTENT, _CHECKED = 1, 2
_HEAD = 16
# Nothing of them is imported by a training.
_LEFT_OUT = {"tests", "test", "__pycache__"}


@dataclass
class Compiled:
    """What compiling has come to: what was written, and the first reason why something was not."""

    files: list[Path] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    problem: str = ""


def sources() -> list[Path]:
    """All files of the package and its libraries that an import may take."""
    folders = [os.path.dirname(os.path.abspath(smd_agent.__file__))]
    for module in LIBRARIES.values():
        try:
            spec = util.find_spec(module)
        except ModuleNotFoundError:
            # Of "google.protobuf", "google" is not there.
            continue
        folders += spec.submodule_search_locations or [] if spec else []
    return [path for folder in folders for path in _below(folder)]


def _below(folder: str) -> Iterator[Path]:
    for place, inner, names in os.walk(folder):
        inner[:] = sorted(set(inner) - _LEFT_OUT)
        yield from (Path(place, name) for name in sorted(names) if name.endswith(".py"))


def is_compiled(source: Path) -> bool:
    """Whether this Python finds byte code of a file that it would take."""
    try:
        with open(util.cache_from_source(str(source)), "rb") as file:
            head = file.read(_HEAD)
        if len(head) < _HEAD or head[:4] != util.MAGIC_NUMBER:
            return False
        flags = int.from_bytes(head[4:8], "little")
        if flags & _BY_CONTENT:
            return not flags & _CHECKED or util.source_hash(source.read_bytes()) == head[8:]
        about = source.stat()
    except (OSError, NotImplementedError):
        return False
    now = (int(about.st_mtime) & 0xFFFFFFFF, about.st_size & 0xFFFFFFFF)
    return now == (int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:], "little"))


def compile_all(files: Iterable[Path]) -> Compiled:
    """Write byte code that is checked by the sources' content: copies of an image do not always keep files' times."""
    done = Compiled()
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    for source in files:
        target = Path(util.cache_from_source(str(source)))
        is_new = not target.parent.exists()
        try:
            py_compile.compile(str(source), str(target), doraise=True, invalidation_mode=mode)
        except py_compile.PyCompileError:
            # Python could not import it either: a template, or written for another version.
            continue
        except OSError as error:
            done.problem = done.problem or f"{error.strerror or error}: {target.parent}"
            continue
        done.files.append(target)
        done.folders += [target.parent] * is_new
    return done
