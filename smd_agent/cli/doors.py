"""The ways by which the agent starts in an interpreter: which are open here, and what is wrong with one that is not.

Whether a way is open is tried: an interpreter is started with the flags of this one, and says whether the agent is in
it. It imports nothing and runs nothing of the user's.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from importlib import metadata
from typing import NamedTuple

from smd_agent import boot
from smd_agent.cli import program
from smd_agent.cli.errors import CommandError
from smd_agent.config import env

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OPEN, CLOSED, BROKEN = "open", "closed", "broken"

DISTRIBUTION = "smd-agent"
_SECONDS = 30.0
_FLAGS = {
    "isolated": "-I",
    "ignore_environment": "-E",
    "no_user_site": "-s",
    "safe_path": "-P",
    "no_site": "-S",
}
# Flags that the first one of them sets, too.
_OF_ISOLATED = ("-E", "-s", "-P")
_NOT_THERE = 3
_ASK = f"import sys; sys.exit(0 if {boot.MARK!r} in vars(sys) else {_NOT_THERE})"
# With a configuration that nothing can be saved by: the trial must not depend on a file of the user's.
_CONFIGURED = {env.HOOK: "{}", env.USE: None, env.STRICT: None, env.REPORTED: None, env.LAUNCH_PID: None}


class Interpreter(NamedTuple):
    """The Python that this process runs.

    version: such as 3.12.4.
    path: of its program.
    supported: the releases of Python that the agent is made for.
    flags: those that decide what starts with it, as they are written on the command line.
    """

    version: str
    path: str
    supported: str
    flags: tuple[str, ...]


class Door(NamedTuple):
    """One way in.

    name: the file's name, PYTHONPATH or launcher.
    state: ``OPEN``, ``CLOSED`` (nothing is there, which is no mistake) or ``BROKEN``.
    detail: where it is, or why it is not open.
    """

    name: str
    state: str
    detail: str


def interpreter() -> Interpreter:
    """Return what is known of this Python."""
    version = ".".join(map(str, sys.version_info[:3]))
    return Interpreter(version, sys.executable or "unknown", _supported(), tuple(flags()))


def flags() -> list[str]:
    """Return the flags of this interpreter that decide what starts with it."""
    found = [flag for name, flag in _FLAGS.items() if getattr(sys.flags, name, False)]
    return [flag for flag in found if not ("-I" in found and flag in _OF_ISOLATED)]


def doors() -> list[Door]:
    """Return all ways in, those that need no command of ours first."""
    return [*_site_doors(), _path_door(), _launcher_door()]


def _supported() -> str:
    """The releases that the package says it runs on and is tested with."""
    try:
        stated = metadata.metadata(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "3.10 or newer"
    prefix = "Programming Language :: Python :: "
    named = [text.removeprefix(prefix) for text in stated.get_all("Classifier") or () if text.startswith(prefix)]
    tested = [text for text in named if "." in text]
    return f"{tested[0]} to {tested[-1]}" if tested else stated["Requires-Python"]


def _site_doors() -> Iterator[Door]:
    found = {os.path.basename(path): path for path in reversed(program.site_hooks())}
    for name in ("smd_agent.pth", "smd_agent.start"):
        if name not in program.HOOK_FILES:
            # Python before 3.15 does not look at it.
            continue
        path = found.get(name)
        if sys.flags.no_site:
            yield Door(name, BROKEN, "python -S skips all start-up files")
        elif path is None:
            yield Door(name, CLOSED, "not installed into this Python (pip install smd-agent)")
        else:
            why = _failure("-E")
            yield Door(name, BROKEN if why else OPEN, f"{path}: {why}" if why else path)


def _path_door() -> Door:
    name = "PYTHONPATH"
    listed = [entry for entry in (env.get(name) or "").split(os.pathsep) if entry]
    ours = next((entry for entry in listed if _is_ours(entry)), None)
    if ours is None:
        return Door(name, CLOSED, "no folder of the agent is on it")
    if sys.flags.no_site or sys.flags.ignore_environment:
        return Door(name, BROKEN, f"python {' '.join(flags())} does not look at it")
    why = _failure()
    if not why:
        return Door(name, OPEN, os.path.join(ours, "sitecustomize.py"))
    other = next((entry for entry in listed if os.path.isfile(os.path.join(entry, "sitecustomize.py"))), ours)
    if other != ours:
        why = f"{os.path.join(other, 'sitecustomize.py')} comes first, and runs no other one"
    return Door(name, BROKEN, why)


def _is_ours(folder: str) -> bool:
    """Whether a folder has our sitecustomize: inside of the installed package, or beside it in a source tree."""
    beside = os.path.join(folder, "smd_agent", "boot.py")
    inside = os.path.join(os.path.dirname(os.path.abspath(folder)), "boot.py")
    customized = os.path.isfile(os.path.join(folder, "sitecustomize.py"))
    is_inner = os.path.basename(os.path.abspath(folder)) == "_site" and os.path.isfile(inside)
    return customized and (is_inner or os.path.isfile(beside))


def _launcher_door() -> Door:
    try:
        way = program.way_into(sys.executable)
    except CommandError as error:
        return Door("launcher", BROKEN, error.message)
    return Door("launcher", OPEN, f"by {way.through}")


def _failure(*more: str) -> str:
    """Why the agent does not come up in an interpreter that is started with the flags of this one; empty if it does."""
    if not sys.executable:
        return "this interpreter does not know its own path (sys.executable is empty)"
    command = [sys.executable, *flags(), *more, "-c", _ASK]
    try:
        with variables(_CONFIGURED):
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"no interpreter could be started ({type(error).__name__})"
    if done.returncode == 0:
        return ""
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return said[-1].removeprefix("smd_agent: ") if said else "it is there, and the agent does not start"


@contextmanager
def variables(values: dict[str, str | None]) -> Iterator[None]:
    """Variables of the environment for as long as children are started; None unsets one."""
    before = {name: env.get(name) for name in values}
    for name, value in values.items():
        env.put(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            env.put(name, value)
