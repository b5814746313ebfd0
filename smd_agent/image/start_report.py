"""The report of an interpreter that has started the agent, for the one that started that interpreter."""

from __future__ import annotations

import json
import os
import re
import sys
from importlib import import_module, metadata

import smd_agent
from smd_agent import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = "smd_agent facts: "
LIBRARIES = {"wrapt": "wrapt", "numpy": "numpy", "protobuf": "google.protobuf", "crc32c": "crc32c"}
"""Distribution -> its module, of all that the agent imports while it captures."""


def tell() -> None:
    """Print the facts, behind whatever the start-up files of others have printed."""
    found: dict[str, Any] = {
        "package": os.path.dirname(os.path.abspath(smd_agent.__file__)),
        "version": smd_agent.__version__,
        "libraries": {name: version_of(name, module) for name, module in LIBRARIES.items()},
        "wanting": [],
    }
    needed = _needed()
    for name, module in LIBRARIES.items():
        problem = guard.attempt(lambda module=module: import_module(module))  # type: ignore[misc]
        if problem is not None:
            found["wanting"].append(f"{name} cannot be imported ({guard.describe(problem)})")
        elif _numbers(found["libraries"][name]) < _numbers(needed.get(name, "")):
            found["wanting"].append(f"{name} {found['libraries'][name]} is too old, {needed[name]} is needed")
    found["kernel"] = "" if found["wanting"] else _kernel()
    sys.stdout.write(f"\n{MARK}{json.dumps(found)}\n")


def version_of(name: str, module: str) -> str:
    """The version of a library by itself, else that of what was installed; empty if neither tells."""
    versions: list[object] = []
    guard.attempt(lambda: versions.append(import_module(module).__version__))
    guard.attempt(lambda: versions.append(metadata.version(name)))
    return str(versions[0]) if versions else ""


def _needed() -> dict[str, str]:
    """The oldest version of each library that will do, as far as the installation says."""
    try:
        lines = metadata.requires("smd-agent") or []
    except metadata.PackageNotFoundError:
        return {}
    found = [re.match(r"([\w-]+)\s*>=\s*([\d.]+)$", line) for line in lines]
    return {one[1]: one[2] for one in found if one}


def _numbers(version: str) -> list[int]:
    plain = re.match(r"[\d.]*", version)
    return [int(part) for part in (plain[0] if plain else "").split(".") if part]


def _kernel() -> str:
    """The reason why a compiled part is not used; empty if all are."""
    from smd_agent.core.reductions import with_kernel
    from smd_agent.storage import writer_thread

    for library, load in ((with_kernel.LIBRARY, with_kernel.Kernel), (writer_thread.LIBRARY, writer_thread.compiled)):
        if not library.exists():
            return f"there is no {library.name}: the package was built without a C compiler"
        problem = guard.attempt(lambda library=library, load=load: load(library))  # type: ignore[misc]
        if problem is not None:
            return f"{library.name} cannot be loaded ({problem})"
    return ""
