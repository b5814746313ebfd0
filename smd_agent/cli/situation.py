"""The situation of a Python, of a program that is to run in it and of its folder, for `info`, and what is wrong."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import smd_agent
from smd_agent.cli import entry_points, launched_program, origins, script_imports
from smd_agent.cli.entry_points import EntryPoint, Framework, Interpreter
from smd_agent.cli.errors import CommandError
from smd_agent.cli.origins import Configuration
from smd_agent.cli.run_folders import state_of
from smd_agent.cli.script_imports import Import, Look
from smd_agent.config import env, keys
from smd_agent.config.keys import DEFAULT_OUT_DIR
from smd_agent.framework.replaced_functions import Until
from smd_agent.patches.declared import declared, declared_for


@dataclass(frozen=True)
class OutFolder:
    """The folder of a run.

    Attributes:
        path: that was asked for.
        holds: what is in it, in words.
        goes_to: where the run would be written: another folder where that one holds a run already.
        free: room on its disk, in bytes; None where that cannot be told.
        problem: why no run can be written; empty if one can.
    """

    path: str
    holds: str
    goes_to: str
    free: int | None
    problem: str


def look_into(path: str) -> OutFolder:
    """Return what is known of a folder; nothing is made or written."""
    folder = Path(path)
    standing = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
    holds, goes_to = _contents(folder)
    free = _free(standing)
    place = standing if standing != folder or goes_to == path else folder.parent
    problem = ""
    if not standing.is_dir():
        problem = f"{standing} is no folder"
    elif not os.access(place, os.W_OK | os.X_OK):
        problem = f"{place} cannot be written by this user"
    elif free == 0:
        problem = f"the disk of {standing} is full"
    return OutFolder(path, holds, goes_to, free, problem)


def _contents(folder: Path) -> tuple[str, str]:
    if not folder.exists():
        return "it does not exist yet", str(folder)
    if not folder.is_dir():
        return "it is no folder", str(folder)
    state = state_of(folder)
    if state is None:
        try:
            empty = next(folder.iterdir(), None) is None
        except OSError as error:
            return f"it cannot be read: {error.strerror}", str(folder)
        return "it is empty" if empty else "it holds files, and no run", str(folder)
    return f"it holds a run ({state})", str(_another(folder))


def _another(folder: Path) -> Path:
    """The folder that a run of one worker gets where this one holds a run; see ``storage.folder_choice``."""
    inside = env.in_training_job() or str(folder) == DEFAULT_OUT_DIR
    for number in itertools.count(2):
        other = folder / f"run-{number}" if inside else folder.with_name(f"{folder.name}-{number}")
        if not os.path.lexists(other):
            return other
    raise AssertionError("there are more numbers")


def _free(standing: Path) -> int | None:
    try:
        return shutil.disk_usage(standing).free
    except OSError:
        return None


WHEN = {
    Until.PROCESS_ENDS: "always",
    Until.MODEL_IS_FOUND: "until the model is found",
    Until.STEP_CLOSES: "in saved steps",
    Until.CALL_RETURNS: "in some calls of saved steps",
}


@dataclass(frozen=True)
class Start:
    """The start of a program as the launcher would do it.

    Attributes:
        program: the file that is executed.
        argv: its arguments, the first of which is its own name.
        through: the file that starts the agent in it; empty where it cannot.
        pythonpath: the folder that is put first on PYTHONPATH for that; empty where there is no need.
    """

    program: str
    argv: list[str]
    through: str = ""
    pythonpath: str = ""


@dataclass(frozen=True)
class Replaced:
    """Functions of a framework that are replaced together: when, in words, and why."""

    functions: tuple[str, ...]
    when: str
    why: str


@dataclass
class Situation:
    """The situation, as it is printed for programs.

    Attributes:
        version: of the agent.
        problems: what is wrong, a sentence each; the first is the most serious.
        is_off: whether ``USE_SMDEBUG`` has switched everything off.
        interpreter: this Python.
        kernel: whether there is a compiled one.
        libraries: the releases of what the agent is made on.
        doors: the entry points.
        configuration: what would be captured, and where that is said.
        variables: those that are set: name, value, meaning.
        output: the run's folder; None where nothing says what to capture.
        starts: what the launcher would do; None without a program.
        imports: what the program imports; None without one.
        frameworks: all that can be captured.
        patches: what is replaced of each framework that matters here.
    """

    version: str
    problems: list[str]
    is_off: bool
    interpreter: Interpreter
    kernel: bool
    libraries: dict[str, str]
    doors: list[EntryPoint]
    configuration: Configuration
    variables: list[dict[str, str]]
    output: OutFolder | None
    starts: Start | None
    imports: tuple[Import, ...] | None
    frameworks: list[Framework]
    patches: dict[str, list[Replaced]] = field(default_factory=dict)

    def relevant(self) -> list[Framework]:
        """The frameworks that matter: of a program that shows what it imports, those and what they bring; else all."""
        imported = [one.framework for one in self.imports or ()]
        known = declared()
        named = {*imported, *(other for name in imported for other in known[name].brings)}
        return [one for one in self.frameworks if one.name in named or not named]


def situation(options: dict[str, str], target: list[str]) -> Situation:
    """Return what there is; nothing is imported, made or started but interpreters that do nothing.

    Args:
        options: of the launcher's command line.
        target: the program and its arguments; empty where there is none.

    Raises:
        CommandError: there is no such program.
    """
    configuration = origins.configuration(options, target)
    folder = next((one.value for one in configuration.values if one.name == keys.LOCAL_PATH.name), None)
    problems = [*_absent(target)]
    look = script_imports.look_at(target) if target else None
    start, refused = _start(target) if target else (None, "")
    found = Situation(
        version=smd_agent.__version__,
        problems=problems + [refused] * bool(refused),
        is_off=not env.use_smdebug(),
        interpreter=entry_points.interpreter(),
        kernel=entry_points.has_kernel(),
        libraries=entry_points.libraries(),
        doors=entry_points.entry_points(),
        configuration=configuration,
        variables=origins.variables(),
        output=None if folder is None else look_into(folder),
        starts=start,
        imports=None if look is None else look.imports,
        frameworks=entry_points.frameworks(),
    )
    for one in found.relevant():
        if one.captured:
            declared = declared_for(one.name, one.version, one.backend)
            found.patches[one.name] = [Replaced(own.functions, WHEN[own.until], own.why) for own in declared]
    found.problems += _problems(found, look)
    return found


def _absent(target: list[str]) -> Iterator[str]:
    if target[:1] == ["-m"] and len(target) > 1 and not script_imports.is_found(target[1]):
        yield f"there is no module called {target[1]}"
    elif target and target[0].endswith(launched_program.PYTHON_ENDINGS) and not os.path.exists(target[0]):
        yield f"there is no file called {target[0]}"


def _start(target: list[str]) -> tuple[Start, str]:
    path, argv = launched_program.resolve(target)
    try:
        way = launched_program.way_into(path)
    except CommandError as error:
        return Start(path, argv), error.message
    return Start(path, argv, way.through, way.folder), ""


def _problems(found: Situation, look: Look | None) -> Iterator[str]:
    if found.is_off:
        yield f"everything is switched off: {env.USE} is {env.get(env.USE)}"
    if found.configuration.error:
        yield found.configuration.error
    yield from _of_doors(found)
    if not sys.flags.no_site:
        missing = [name for name, version in found.libraries.items() if not version]
        if missing:
            yield f"not installed, and nothing is captured without: {', '.join(missing)}"
        yield from _of_frameworks(found, look)
    if found.output is not None and found.output.problem:
        yield f"no run can be written into {found.output.path}: {found.output.problem}"
    yield from found.configuration.warnings


def _of_doors(found: Situation) -> Iterator[str]:
    broken = [one for one in found.doors if one.state == entry_points.BROKEN]
    launcher = [one for one in broken if one.name == entry_points.LAUNCHER]
    if sys.flags.no_site and launcher:
        # All that is installed seems to be missing then, which is one mistake.
        broken = launcher
    for one in broken:
        # Of a program it is said what keeps the agent out of that.
        if one.name != entry_points.LAUNCHER or found.starts is None:
            yield f"{one.name}: {one.detail}"


def _of_frameworks(found: Situation, look: Look | None) -> Iterator[str]:
    by_name = {one.name: one for one in found.frameworks}
    for one in found.imports or ():
        framework = by_name[one.framework]
        if not framework.version:
            yield f"{one.framework}, which {one.place} imports, is not installed in this Python"
        elif not framework.captured:
            yield f"{one.framework} {framework.version}, which {one.place} imports: {framework.note}"
    if found.imports:
        return
    names = ", ".join(sorted(declared()))
    if look is not None and look.problem:
        yield look.problem
    elif look is not None and look.file:
        yield f"{look.file} imports no framework that is captured, as far as its text tells: {names}"
    if not any(one.captured for one in found.frameworks):
        yield f"no framework that is captured is installed in this Python: {names}"
