"""The installed releases of the frameworks and of the agent's own libraries; no framework is imported for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from smd_agent.config import env
from smd_agent.image.within import LIBRARIES
from smd_agent.patches import declared


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
