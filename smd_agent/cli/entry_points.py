"""The entry points by which the agent starts in an interpreter, and what is wrong with one that does not work.

Each is tried: an interpreter is started with the flags of this one, and says whether the agent is in it. It imports
nothing and runs nothing of the user's.

Also the installed releases of the frameworks and of the agent's own libraries; no framework is imported for them.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from smd_agent.cli import launched_program
from smd_agent.cli.errors import CommandError
from smd_agent.config import env
from smd_agent.image.start_report import LIBRARIES
from smd_agent.image.start_state import look
from smd_agent.patches import declared

OPEN, CLOSED, BROKEN = "open", "closed", "broken"
LAUNCHER = "launcher"

_FLAGS = {"isolated": "-I", "ignore_environment": "-E", "no_user_site": "-s", "safe_path": "-P", "no_site": "-S"}
# Flags that the first one of them sets, too.
_OF_ISOLATED = ("-E", "-s", "-P")


@dataclass(frozen=True)
class Interpreter:
    """The Python that this process runs.

    Attributes:
        version: such as 3.12.4.
        path: of its program.
        supported: the releases of Python that the agent is made for.
        flags: those that decide what starts with it, as they are written on the command line.
    """

    version: str
    path: str
    supported: str
    flags: list[str]


@dataclass(frozen=True)
class EntryPoint:
    """One way in.

    Attributes:
        name: the file's name, PYTHONPATH or launcher.
        state: ``OPEN``, ``CLOSED`` (nothing is there, which is no mistake) or ``BROKEN``.
        detail: where it is, or why it is not open.
    """

    name: str
    state: str
    detail: str


def interpreter() -> Interpreter:
    """Return what is known of this Python."""
    return Interpreter(".".join(map(str, sys.version_info[:3])), sys.executable or "unknown", _supported(), _flags())


def entry_points() -> list[EntryPoint]:
    """Return all of them, those that need no command of ours first."""
    return [*_start_files(), _python_path(), _launcher()]


def _flags() -> list[str]:
    found = [flag for name, flag in _FLAGS.items() if getattr(sys.flags, name, False)]
    return [flag for flag in found if not ("-I" in found and flag in _OF_ISOLATED)]


def _supported() -> str:
    """The releases that the package says it runs on and is tested with."""
    try:
        classifiers = metadata.metadata("smd-agent").get_all("Classifier") or ()
    except metadata.PackageNotFoundError:
        classifiers = ()
    prefix = "Programming Language :: Python :: "
    tested = [text.removeprefix(prefix) for text in classifiers if text.startswith(f"{prefix}3.")]
    return f"{tested[0]} to {tested[-1]}" if tested else "3.10 or newer"


def _start_files() -> Iterator[EntryPoint]:
    found = {os.path.basename(path): path for path in reversed(launched_program.site_hooks())}
    for name in launched_program.HOOK_FILES:
        path = found.get(name)
        if sys.flags.no_site:
            yield EntryPoint(name, BROKEN, "python -S skips all start-up files")
        elif path is None:
            yield EntryPoint(name, CLOSED, "not installed into this Python (pip install smd-agent)")
        else:
            why = _failure(by_path=False)
            yield EntryPoint(name, BROKEN if why else OPEN, f"{path}: {why}" if why else path)


def _python_path() -> EntryPoint:
    name = "PYTHONPATH"
    listed = [entry for entry in (env.get(name) or "").split(os.pathsep) if entry]
    customized = [entry for entry in listed if os.path.isfile(os.path.join(entry, "sitecustomize.py"))]
    if not any(map(_is_ours, customized)):
        return EntryPoint(name, CLOSED, "no folder of the agent is on it")
    if sys.flags.no_site or sys.flags.ignore_environment:
        return EntryPoint(name, BROKEN, f"python {' '.join(_flags())} does not look at it")
    why = _failure()
    first = os.path.join(customized[0], "sitecustomize.py")
    if not why:
        return EntryPoint(name, OPEN, os.path.join(next(filter(_is_ours, customized)), "sitecustomize.py"))
    return EntryPoint(name, BROKEN, why if _is_ours(customized[0]) else f"{first} comes first, and runs no other one")


def _is_ours(folder: str) -> bool:
    """True for a folder whose sitecustomize.py is ours: inside of the package, or beside it in a source tree."""
    path = os.path.abspath(folder)
    inside = os.path.basename(path) == "_site"
    return os.path.isfile(os.path.join(os.path.dirname(path) if inside else f"{path}/smd_agent", "boot.py"))


def _launcher() -> EntryPoint:
    try:
        return EntryPoint(LAUNCHER, OPEN, f"by {launched_program.way_into(sys.executable).through}")
    except CommandError as error:
        return EntryPoint(LAUNCHER, BROKEN, error.message)


def _failure(*, by_path: bool = True) -> str:
    """The reason why the agent does not come up in an interpreter with the flags of this one; empty if it does."""
    if not sys.executable:
        return "this interpreter does not know its own path (sys.executable is empty)"
    seen = look(_flags(), by_path=by_path)
    if seen.armed:
        return ""
    said = [line for line in seen.said if line.strip()]
    return said[-1].removeprefix("smd_agent: ") if said else seen.failure or "it is there, and the agent does not start"


@dataclass(frozen=True)
class Framework:
    """A framework that may be captured.

    Attributes:
        name: by which it is imported.
        version: its release; empty where it is not installed, ``unknown`` where it does not say.
        supported: the releases that are, in words.
        note: why it is not captured, or with what it computes; empty where there is nothing to say.
        captured: whether what a program trains with it is.
    """

    name: str
    version: str
    supported: str
    note: str
    captured: bool

    @property
    def backend(self) -> str:
        """The backend that a Keras computes with."""
        return keras_backend() if self.name == "keras" and not self.version.startswith("2.") else "tensorflow"


def frameworks() -> list[Framework]:
    """Return all that are captured, those that are not installed too."""
    return [_framework(name, known) for name, known in declared.declared().items()]


def _framework(name: str, known: declared.Framework) -> Framework:
    supported = known.supported
    version = _version(name, known.distributions or (name,))
    found = Framework(name, version, str(supported), "", bool(version))
    if not version:
        return found
    if version != "unknown" and not supported.holds(version):
        return Framework(name, version, str(supported), f"not supported, {supported} is", False)
    if not known.backends:
        return found
    captured = found.backend in known.backends
    note = f"computes with {found.backend}{'' if captured else ', which is not captured'}"
    return Framework(name, version, str(supported), note, captured)


def libraries() -> dict[str, str]:
    """Return the releases of what the agent is made on; empty where it is not installed."""
    return {name: _released(name) for name in LIBRARIES}


def has_kernel() -> bool:
    """True where the compiled kernel computes reductions; without NumPy, which it is loaded by, it does not."""
    try:
        from smd_agent.core import reductions
    except ImportError:
        return False
    return reductions.has_kernel()


def keras_backend() -> str:
    """Return what Keras 3 computes with when it is imported: a variable says so, else Keras's own file."""
    named = env.get("KERAS_BACKEND")
    if named:
        return named
    home = Path(env.get("KERAS_HOME") or Path("~/.keras").expanduser())
    try:
        content = json.loads((home / "keras.json").read_text())
    except (OSError, ValueError):
        return "tensorflow"
    named = content.get("backend") if isinstance(content, dict) else None
    return named if isinstance(named, str) else "tensorflow"


def _version(name: str, distributions: tuple[str, ...]) -> str:
    if PathFinder.find_spec(name) is None:
        return ""
    # Finding the distribution of a package by its files takes long.
    release = next(filter(None, map(_released, distributions)), "")
    owners = () if release else metadata.packages_distributions().get(name, ())
    return release or next(filter(None, map(_released, owners)), "unknown")


def _released(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
