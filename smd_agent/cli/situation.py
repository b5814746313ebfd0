"""All that `info` tells of a Python and of a program that is to run in it, and what is wrong with it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

from smd_agent.cli import doors, libraries, origins, out_folder, program, script_look
from smd_agent.cli.errors import CommandError
from smd_agent.config import env
from smd_agent.patches import FRAMEWORKS
from smd_agent.patches.declared import Declared, declared_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smd_agent.cli.doors import Door, Interpreter
    from smd_agent.cli.libraries import Framework, Library
    from smd_agent.cli.origins import Configuration, Given
    from smd_agent.cli.out_folder import OutFolder
    from smd_agent.cli.script_look import Look

# A framework that brings another one, which is captured for itself.
_WITH = {"tensorflow": "keras"}


class Plan(NamedTuple):
    """What the launcher would do with a program.

    program: the file that is executed.
    argv: its arguments, the first of which is its own name.
    through: the file that starts the agent in it; empty where it cannot.
    pythonpath: the folder that is put first on PYTHONPATH for that; empty where there is no need.
    """

    program: str
    argv: tuple[str, ...]
    through: str
    pythonpath: str


@dataclass
class Situation:
    """All of it.

    Attributes:
        interpreter: this Python.
        doors: the ways in.
        configuration: what would be captured, and where that is said.
        variables: those that are set.
        frameworks: all that can be captured.
        libraries: what the agent is made on.
        kernel: whether there is a compiled one.
        output: the run's folder; None where nothing says what to capture.
        plan: what the launcher would do; None without a program.
        look: what the program imports; None without one.
        patches: what is replaced of each framework that matters here.
        problems: what is wrong, a sentence each; the first is the most serious.
        is_off: whether ``USE_SMDEBUG`` has switched everything off.
    """

    interpreter: Interpreter
    doors: list[Door]
    configuration: Configuration
    variables: list[Given]
    frameworks: list[Framework]
    libraries: list[Library]
    kernel: bool
    output: OutFolder | None = None
    plan: Plan | None = None
    look: Look | None = None
    patches: dict[str, tuple[Declared, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    is_off: bool = False

    def relevant(self) -> list[Framework]:
        """The frameworks that matter: of a program that shows what it imports, those and what they bring; else all."""
        imported = [one.framework for one in self.look.imports] if self.look is not None else []
        named = {*imported, *(_WITH[name] for name in imported if name in _WITH)}
        return [one for one in self.frameworks if one.name in named or not named]


def situation(options: Mapping[str, str], target: list[str]) -> Situation:
    """Return what there is; nothing is imported, made or started but interpreters that do nothing.

    Args:
        options: of the launcher's command line.
        target: the program and its arguments; empty where there is none.

    Raises:
        CommandError: there is no such program.
    """
    found = Situation(
        doors.interpreter(),
        doors.doors(),
        origins.configuration(options, target),
        origins.variables(),
        libraries.frameworks(),
        libraries.libraries(),
        libraries.has_kernel(),
        is_off=not env.use_smdebug(),
    )
    if found.configuration.settings is not None:
        folder = next(value for value in found.configuration.values if value.name == "LocalPath")
        found.output = out_folder.look_into(folder.value)
    if target:
        found.problems += _absent(target)
        found.look = script_look.look_at(target)
        found.plan, refused = _plan(target)
        found.problems += [refused] if refused else []
    for one in found.relevant():
        if one.captured:
            found.patches[one.name] = declared_for(one.name, one.version, one.backend)
    found.problems += _problems(found)
    return found


def _absent(target: list[str]) -> Iterator[str]:
    if target[0] == "-m" and len(target) > 1 and not script_look.is_found(target[1]):
        yield f"there is no module called {target[1]}"
    elif target[0].endswith(program.PYTHON_ENDINGS) and not os.path.exists(target[0]):
        yield f"there is no file called {target[0]}"


def _plan(target: list[str]) -> tuple[Plan, str]:
    path, argv = program.resolve(target)
    try:
        way = program.way_into(path)
    except CommandError as error:
        return Plan(path, tuple(argv), "", ""), error.message
    return Plan(path, tuple(argv), way.through, way.folder), ""


def _problems(found: Situation) -> Iterator[str]:
    if found.is_off:
        yield f"everything is switched off: {env.USE} is {env.get(env.USE)}"
    if found.configuration.error:
        yield found.configuration.error
    yield from _of_doors(found)
    if not sys.flags.no_site:
        missing = [library.name for library in found.libraries if not library.version]
        if missing:
            yield f"not installed, and nothing is captured without: {', '.join(missing)}"
        yield from _of_frameworks(found)
    if found.output is not None and found.output.problem:
        yield f"no run can be written into {found.output.path}: {found.output.problem}"
    yield from found.configuration.warnings


def _of_doors(found: Situation) -> Iterator[str]:
    broken = [door for door in found.doors if door.state == doors.BROKEN]
    launcher = [door for door in broken if door.name == "launcher"]
    if sys.flags.no_site and launcher:
        # All that is installed seems to be missing then, which is one mistake.
        broken = launcher
    for door in broken:
        # Of a program it is said what keeps the agent out of that.
        if door.name != "launcher" or found.plan is None:
            yield f"{door.name}: {door.detail}"


def _of_frameworks(found: Situation) -> Iterator[str]:
    by_name = {one.name: one for one in found.frameworks}
    imports = found.look.imports if found.look is not None else ()
    for one in imports:
        framework = by_name[one.framework]
        if not framework.version:
            yield f"{one.framework}, which {one.place} imports, is not installed in this Python"
        elif not framework.captured:
            yield f"{one.framework} {framework.version}, which {one.place} imports: {framework.note}"
    if imports:
        return
    if found.look is not None and found.look.problem:
        yield found.look.problem
    elif found.look is not None and found.look.file:
        yield f"{found.look.file} imports no framework that is captured, as far as its text tells: {_names()}"
    if not any(one.captured for one in found.frameworks):
        yield f"no framework that is captured is installed in this Python: {_names()}"


def _names() -> str:
    return ", ".join(sorted(FRAMEWORKS))
