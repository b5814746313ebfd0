"""Facts of where a training runs that the process knows without asking for anything: noted once, for who compares.

Nothing is computed, loaded or initialised for it, and no state is changed. No name of a user, a host or a folder is
among the facts, no argument of the command line, and no variable of the environment.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import smd_agent
from smd_agent import guard
from smd_agent.regular_file import open_to_read

Fact = tuple[str, str, object]
"""Group, name and value."""

Sources = tuple[Callable[[], Iterable[Fact]], ...]

PROGRAM, VERSIONS, MACHINE, SETTINGS, SEEDS, RANDOM = (
    "program", "versions", "machine", "settings", "seeds", "random state",
)  # fmt: skip

# What they are called, by the names of modules that the program may have imported.
_LIBRARIES = {
    "numpy": "NumPy",
    "torchvision": "torchvision",
    "transformers": "transformers",
    "accelerate": "Accelerate",
    "lightning": "Lightning",
    "pytorch_lightning": "PyTorch Lightning",
    "deepspeed": "DeepSpeed",
    "sklearn": "scikit-learn",
}
_CPU_INFO = "/proc/cpuinfo"
_LONGEST = 200


def environment(*sources: Callable[[], Iterable[Fact]]) -> dict[str, dict[str, str]]:
    """Return facts as text, by group and name.

    Args:
        sources: give the facts of a framework; one that fails gives those before that.
    """
    found: dict[str, dict[str, str]] = {}
    for source in (_of_process, *sources, _of_machine, _of_random_numbers):
        guard.attempt(lambda source=source: _take(found, source()))  # type: ignore[misc]
    return found


def library_version(module: str) -> str | None:
    """Return the version that a module states; None where the program has not imported it, or it states none."""
    version = getattr(sys.modules.get(module), "__version__", None)
    return version if isinstance(version, str) else None


def fingerprint(*parts: bytes) -> str:
    """Return twelve digits that are the same for the same bytes."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:12]


def _take(found: dict[str, dict[str, str]], facts: Iterable[Fact]) -> None:
    for group, name, value in facts:
        if value is not None:
            found.setdefault(group, {})[name] = str(value)[:_LONGEST]


def _of_process() -> Iterator[Fact]:
    yield VERSIONS, "smd_agent", smd_agent.__version__
    yield VERSIONS, "Python", ".".join(map(str, sys.version_info[:3]))
    for module, name in _LIBRARIES.items():
        yield VERSIONS, name, library_version(module)
    yield PROGRAM, "script", os.path.basename(sys.argv[0])


def _of_machine() -> Iterator[Fact]:
    system = os.uname() if hasattr(os, "uname") else None
    yield MACHINE, "system", sys.platform if system is None else f"{system.sysname} {system.machine}"
    yield MACHINE, "cores", len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with open_to_read(_CPU_INFO) as file:
        # The first of many, which say the same.
        start = (file.read(2048) or b"").decode(errors="replace")
    names = (line.partition(":")[2].strip() for line in start.splitlines() if line.startswith("model name"))
    yield MACHINE, "CPU", next(names, None)


def _of_random_numbers() -> Iterator[Fact]:
    # A seed is not kept by either; but the same state gives the same numbers.
    standard: Any = sys.modules.get("random")
    if standard is not None:
        yield RANDOM, "Python", fingerprint(repr(standard.getstate()).encode())
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None:
        state = numpy.get_state(legacy=False)
        yield RANDOM, "NumPy", fingerprint(*(bytes(str(value), "ascii") for value in _flat(state)))


def _flat(state: Any) -> Iterator[object]:
    if isinstance(state, dict):
        for value in state.values():
            yield from _flat(value)
    else:
        yield state.tobytes() if hasattr(state, "tobytes") else state
