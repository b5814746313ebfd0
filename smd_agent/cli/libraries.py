"""What is installed here that matters: frameworks with the releases that are supported, and what the agent is made on.

No framework is imported for it.
"""

from __future__ import annotations

import json
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

from smd_agent.config import env
from smd_agent.patches import FRAMEWORKS
from smd_agent.patches.supported import SUPPORTED

# Distributions by the name they are imported by, as far as that differs; the first that is installed counts.
_DISTRIBUTIONS = {
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-macos", "tensorflow-intel", "tf-nightly"),
    "xgboost": ("xgboost", "xgboost-cpu"),
    "tf_keras": ("tf-keras",),
    "mxnet": ("mxnet", "mxnet-mkl", "mxnet-cu112", "mxnet-cu110", "mxnet-cu102"),
}
NEEDED = ("wrapt", "numpy", "protobuf", "crc32c")
KERAS_BACKENDS = ("tensorflow", "torch")
_KERAS = ("keras", "tf_keras")
_BACKEND_VARIABLE = "KERAS_BACKEND"


class Framework(NamedTuple):
    """A framework that may be captured.

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
        """What a Keras computes with."""
        return keras_backend() if self.name == "keras" and not self.version.startswith("2.") else "tensorflow"


class Library(NamedTuple):
    """A library that the agent is made on; ``version`` is empty where it is not installed."""

    name: str
    version: str


def frameworks() -> list[Framework]:
    """Return all that are captured, those that are not installed too."""
    return [framework(name) for name in FRAMEWORKS]


def framework(name: str) -> Framework:
    """Return what is known of one of them."""
    supported = SUPPORTED[name]
    version = _version(name)
    found = Framework(name, version, str(supported), "", bool(version))
    if not version:
        return found
    if version != "unknown" and not supported.holds(version):
        return found._replace(note=f"not supported, {supported} is", captured=False)
    if name not in _KERAS:
        return found
    backend = found.backend
    if backend not in KERAS_BACKENDS:
        return found._replace(note=f"computes with {backend}, which is not captured", captured=False)
    return found._replace(note=f"computes with {backend}")


def libraries() -> list[Library]:
    """Return what the agent is made on."""
    return [Library(name, _released(name)) for name in NEEDED]


def has_kernel() -> bool:
    """Whether reductions are computed by the compiled kernel; without NumPy, which it is loaded by, they are not."""
    try:
        from smd_agent.core import reductions
    except ImportError:
        return False
    return reductions.has_kernel()


def keras_backend() -> str:
    """Return what Keras 3 computes with when it is imported: a variable says so, else Keras's own file."""
    named = env.get(_BACKEND_VARIABLE)
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
    found = (_released(distribution) for distribution in _DISTRIBUTIONS.get(name, (name,)))
    return next(filter(None, found), "") or _of_distributions(name) or "unknown"


def _of_distributions(name: str) -> str:
    """The release of whatever distribution has this package; a look at the files of all that are installed."""
    owners = metadata.packages_distributions().get(name, ())
    return next(filter(None, map(_released, owners)), "")


def _released(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
