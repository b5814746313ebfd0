"""The state of this Python: whether it starts the agent, by what, and if not, why not.

One is started for that, asked to capture, and asked what became of it.
"""

from __future__ import annotations

import json
import os
import py_compile
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path
from typing import Any

import smd_agent
from smd_agent.config import env
from smd_agent.image import start_files
from smd_agent.image.start_report import LIBRARIES, MARK

# Flags in a file's head: it is checked by the source's content, and whether it is checked at all.
_BY_CONTENT, _CHECKED = 1, 2
_HEAD = 16
# Nothing of them is imported by a training.
_LEFT_OUT = {"tests", "test", "__pycache__"}


@dataclass
class Compiled:
    """The outcome of compiling: what was written, and the first reason why something was not."""

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
    """True if this Python finds byte code of a file that it would take."""
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


_SECONDS = 120
# The folder that "-c" puts before all others is not that of a script.
_CODE = """
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
if any(type(one).__name__ == "_FrameworkFinder" for one in sys.meta_path):
    {then}
"""
_TELL = "from smd_agent.image.start_report import tell; tell()"
_ARMED = f"print({MARK + '{}'!r})"


@dataclass(frozen=True)
class Look:
    """The outcome of an interpreter's start.

    Attributes:
        armed: whether the agent was started in it.
        failure: why it did not come to run code at all; empty if it did.
        said: what was said on stderr, by whomever.
        facts: what `within.tell` tells, if it was asked for.
    """

    armed: bool
    failure: str = ""
    said: tuple[str, ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)


def look(options: Sequence[str] = (), *, by_path: bool = True, facts: bool = False) -> Look:
    """Start this Python as for a program that is to be captured, and look at it before that program's first line.

    Args:
        options: of the interpreter.
        by_path: whether PYTHONPATH counts.
        facts: whether what a capture imports is imported, and told of.
    """
    code = _CODE.format(then=_TELL if facts else _ARMED)
    # Whether it is switched off says nothing about the Python.
    changes: dict[str, str | None] = {env.HOOK: "{}", env.USE: None, env.STRICT: None}
    if not by_path:
        changes["PYTHONPATH"] = None
    try:
        done = subprocess.run(
            [sys.executable, *options, "-c", code],
            env=env.for_child(changes),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Look(False, failure=str(error))
    said = tuple(done.stderr.splitlines())
    told = [line[len(MARK) :] for line in done.stdout.splitlines() if line.startswith(MARK)]
    failure = f"exit code {done.returncode}: {said[-1] if said else 'no reason is given'}" if done.returncode else ""
    return Look(bool(told), failure, said, json.loads(told[-1]) if told else {})


NEWEST_TESTED = (3, 13)
_FAILED = "smd_agent: start failed ("


@dataclass(frozen=True)
class State:
    """The state of this Python.

    Attributes:
        wrong: why programs are not captured by it; empty if they are.
        door: the file or variable that starts the agent; empty if it is not started.
        shut: options of the interpreter with which it is not started, and why.
        seen: the look that was taken.
        compiled: how many files of the package and its libraries have byte code.
        files: how many there are.
    """

    wrong: str
    door: str
    shut: str
    seen: Look
    compiled: int
    files: int


def state(options: Sequence[str] = ()) -> State:
    """Look at this Python; ``options`` are those that it was started with."""
    seen = look(options, facts=True)
    door, shut = _door() if seen.armed else ("", "")
    files = sources()
    return State(_wrong(seen, options), door, shut, seen, sum(map(is_compiled, files)), len(files))


def _door() -> tuple[str, str]:
    found = [str(path) for path in start_files.ours()]
    # In the folder of an editable installation there is one too, which is found by a line of another file.
    by_file = found[0] if found else next(map(str, start_files.customizers()), "a start-up file")
    if look(["-I"]).armed:
        return by_file, ""
    if look(by_path=False).armed:
        return by_file, "-I and -s, which leave a user's own folder out"
    return "PYTHONPATH", "-I and -E, which ignore it"


def _wrong(seen: Look, options: Sequence[str]) -> str:
    if seen.failure:
        return f"it does not come to run a program ({seen.failure})"
    if not seen.armed:
        return _why_not(seen, options)
    if seen.facts["wanting"]:
        return "; ".join(seen.facts["wanting"])
    if not env.use_smdebug():
        return f"{env.USE}={env.get(env.USE)} switches the agent off"
    return ""


def _why_not(seen: Look, options: Sequence[str]) -> str:
    flags = sys.flags
    if flags.no_site:
        return "-S skips all start-up files"
    for line in seen.said:
        if line.startswith(_FAILED):
            return line[len(_FAILED) :].rpartition(");")[0]
    for path in start_files.ours():
        if not os.access(path, os.R_OK):
            return f"{path} is there, but this user may not read it"
    if flags.ignore_environment and look().armed:
        return f"it is started by PYTHONPATH, which {' '.join(options)} ignores"
    hidden = _hidden_by()
    if hidden:
        return f"{hidden} comes first and does not run the next sitecustomize.py, which is ours"
    return f"there is no {start_files.PTH} in {' or '.join(start_files.site_folders())}"


def _hidden_by() -> Path | None:
    """The first `sitecustomize.py` of others, where ours comes behind it."""
    found = start_files.customizers()
    places = [place for place, path in enumerate(found) if _is_ours(path)]
    return found[0] if places and places[0] else None


def _is_ours(path: Path) -> bool:
    package = os.path.dirname(os.path.abspath(smd_agent.__file__))
    return path.parent in (Path(package).parent, Path(package, "_site"))
