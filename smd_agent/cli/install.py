"""Prepare this Python, that of an image, to start the agent; or say whether it does.

It writes byte code of the package and its libraries, so that an interpreter starts as fast where nothing can be
written; and smd_agent.pth into the folder that this Python's start-up files are run from, where none is that works: the
package may lie in a folder of its own, as after pip install --target. That folder then comes last on the path, so that
a program's own versions of libraries win. What was written stands in smd_agent.install.json beside it, and --uninstall
takes exactly that away.

Programs are captured only where the environment asks for it: by SMDEBUG_CONFIG_FILE_PATH, or by the file that
SageMaker puts into a container.

Exit code 0: this Python starts the agent, and can load what that needs. 1: it does not, and a line says why; or
something could not be written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from smd_agent import guard
from smd_agent.cli.launched_program import interpreter_options
from smd_agent.cli.output import emit, emit_all, facts
from smd_agent.image import start_files
from smd_agent.image.prepare import prepare, take_away
from smd_agent.image.start_state import NEWEST_TESTED, State, state
from smd_agent.printable import count_of, some_of

_SHOWN, _LABEL = 6, 9


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    instead = parser.add_mutually_exclusive_group().add_argument
    instead("--check", action="store_true", help="only say whether this Python starts the agent, and by what")
    instead("--uninstall", action="store_true", help="take away what this command has written for this Python")


def run(args: argparse.Namespace) -> int:
    """Do what was asked for, and say what this Python does now."""
    if args.uninstall:
        return _uninstall()
    problem = "" if args.check else _prepare()

    found = state(_options())
    emit_all(_lines(found))
    if problem:
        guard.say(problem)
    return 1 if found.wrong or problem else 0


def _options() -> list[str]:
    """Options of the interpreter, if it was started with nothing else, such as another tool."""
    words = interpreter_options()
    return words if all(word.startswith("-") and word not in ("-m", "-c") for word in words) else []


def _prepare() -> str:
    done = prepare()
    for path in done.written:
        emit(f"wrote {path}")
    if done.compiled:
        emit(f"wrote byte code of {count_of(done.compiled, 'file')}")
    if not (done.written or done.compiled or done.problem):
        emit("there is nothing to do")
    return done.problem


def _uninstall() -> int:
    removed, left, problem = take_away()
    start_up = [path for path in removed if not path.endswith(".pyc")]
    for path in start_up:
        emit(f"removed {path}")
    if len(removed) > len(start_up):
        emit(f"removed byte code of {count_of(len(removed) - len(start_up), 'file')}")
    if not (removed or left or problem):
        emit("there is nothing to remove: this command has written nothing for this Python")
    if left:
        guard.say(f"{count_of(len(left), 'file')} changed since, left as they are: {', '.join(left[:_SHOWN])}")
    if problem:
        guard.say(problem)
    return 1 if problem else 0


def _lines(found: State) -> Iterator[str]:
    verdict = f"does not capture programs: {found.wrong}" if found.wrong else "starts the agent"
    rows = [("Verdict", f"this Python {verdict}"), ("Python", f"{_version()} at {sys.executable}")]
    if found.door:
        rows.append(("Started", f"by {found.door}" + (f"; not with {found.shut}" if found.shut else ", with -I too")))
    seen = found.seen.facts
    if seen:
        rows.append(("Package", f"smd_agent {seen['version']} in {seen['package']}"))
        rows.append(("Needs", ", ".join(f"{name} {version}".rstrip() for name, version in seen["libraries"].items())))
        rows.append(("Kernel", seen["kernel"] + "; NumPy does it" if seen["kernel"] else "compiled"))
    if found.compiled == found.files:
        rows.append(("Bytecode", f"of all {found.files} files"))
    else:
        rows.append(("Bytecode", f"of {found.compiled} of {found.files} files; python -m smd_agent install writes it"))
    beside = _beside()
    if beside:
        rows.append(("Beside", beside))
    return facts(rows, _LABEL)


def _version() -> str:
    newer = "" if sys.version_info[:2] <= NEWEST_TESTED else ", newer than what is tested"
    return f"{sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}{newer}"


def _beside() -> str:
    return some_of([str(path) for path in [*start_files.others(), *start_files.customizers()]], _SHOWN)
