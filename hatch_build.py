"""Compiles what NumPy does otherwise, reductions and copies, into the wheel where a C compiler is at hand.

The libraries use nothing of Python, so one wheel serves every version of it, and no Python headers are needed. CC,
CFLAGS and LDFLAGS are followed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

SOURCES = (Path("smd_agent", "core", "reductions", "kernel.c"), Path("smd_agent", "storage", "copy.c"))
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden")


class KernelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Compiles each of SOURCES into the wheel that is being built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and make the wheel one for this platform."""
        self._folder = tempfile.mkdtemp()
        if version == "editable":
            # Python finds the source tree there, in which nothing is put.
            return
        libraries = {source: Path(self._folder, source.with_suffix(".so").name) for source in SOURCES}
        for source, library in libraries.items():
            why_not = compile_library(Path(self.root, source), library)
            if why_not:
                words = "smd-agent is built without its compiled reductions and copies, NumPy does them"
                self.app.display_warning(f"{words}: {why_not}")
                return
        for source, library in libraries.items():
            build_data["force_include"][str(library)] = source.with_suffix(".so").as_posix()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled; the wheel holds a copy."""
        shutil.rmtree(self._folder, ignore_errors=True)


def compile_library(source: Path, library: Path) -> str:
    """Compile a shared library, and say why that is not possible, if so."""
    named = shlex.split(os.environ.get("CC", ""))
    compiler = named or [name for name in COMPILERS if shutil.which(name)][:1]
    if not compiler:
        return f"there is no C compiler ({', '.join(COMPILERS)})"
    flags = [*shlex.split(os.environ.get("CFLAGS", "")), *shlex.split(os.environ.get("LDFLAGS", ""))]
    command = [*compiler, *FLAGS, str(source), "-o", str(library), *flags, "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{compiler[0]} cannot be run: {error.strerror}"
    if done.returncode or not library.exists():
        return f"{shlex.join(command)} failed: {done.stderr.strip()}"
    return ""


def platform() -> str:
    """Name this platform as wheels do; libc's version, which a name may hold, is not examined."""
    return next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))
