"""The installed releases of the frameworks and of the agent's own libraries; no framework is imported for them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

from smd_agent.config import env
from smd_agent.image.within import LIBRARIES
from smd_agent.patches import FRAMEWORKS
from smd_agent.patches.supported import SUPPORTED

_KERAS_BACKENDS = ("tensorflow", "torch")
_KERAS = ("keras", "tf_keras")


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
    return [_framework(name) for name in FRAMEWORKS]


def _framework(name: str) -> Framework:
    supported = SUPPORTED[name]
    version = _version(name)
    found = Framework(name, version, str(supported), "", bool(version))
    if not version:
        return found
    if version != "unknown" and not supported.holds(version):
        return Framework(name, version, str(supported), f"not supported, {supported} is", False)
    if name not in _KERAS:
        return found
    captured = found.backend in _KERAS_BACKENDS
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


def _version(name: str) -> str:
    if PathFinder.find_spec(name) is None:
        return ""
    # A framework has several distributions, such as tensorflow-cpu; finding one by its files takes long.
    owners = () if _released(name) else metadata.packages_distributions().get(name, ())
    return next(filter(None, map(_released, (name, *owners))), "unknown")


def _released(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
