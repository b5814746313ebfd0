"""Compiles into the wheel, where a C compiler is at hand, reductions and copies, and the start of a process.

NumPy does the first two otherwise.

The libraries use nothing of Python, so one wheel serves every version of it, and no Python headers are needed. CC,
CFLAGS and LDFLAGS are followed.

The same sources, compiler and flags give the same wheel, byte by byte, wherever the sources lie.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.tags import platform_tags

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCES = (
    Path("smd_agent", "core", "reductions", "kernel.c"),
    Path("smd_agent", "storage", "copy.c"),
    Path("smd_agent", "storage", "spawn.c"),
)
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-shared", "-fvisibility=hidden")
# What every Linux with glibc has; the loader is named by some linkers.
GLIBC = re.compile(r"lib[cm]\.so\.6|ld-linux.*\.so\.\d|ld64\.so\.\d")
# Of glibc 2: the oldest that wheels for all processors can name.
OLDEST = 17
RELATIVE_LINK = re.compile(r"\[([^\]]+)\]\(((?!\w+:|#)[^)]+)\)")
# Kinds of sections, and of entries of the first.
_DYNAMIC, _VERSIONS, _NEEDED = 6, 0x6FFFFFFE, 1


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
            why_not = compile_library(Path(self.root), source, library)
            if why_not:
                words = "smd-agent is built without its compiled reductions and copies, NumPy does them"
                self.app.display_warning(f"{words}: {why_not}")
                return
        for source, library in libraries.items():
            build_data["force_include"][str(library)] = source.with_suffix(".so").as_posix()
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform(libraries.values())}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled; the wheel holds a copy."""
        shutil.rmtree(self._folder, ignore_errors=True)


class ReadmeHook(MetadataHookInterface):
    """Makes the README one for a package index, which has no other page of the project."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Point links at the address that pyproject.toml has for the sources; without one, keep their texts alone."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        sources = metadata.get("urls", {}).get("Source", "")
        link = rf"[\1]({sources}/blob/HEAD/\2)" if sources else r"\1"
        metadata["readme"] = {"content-type": "text/markdown", "text": RELATIVE_LINK.sub(link, text)}


def compile_library(root: Path, source: Path, library: Path) -> str:
    """Compile a shared library from a file below ``root``, and say why that is not possible, if so."""
    named = shlex.split(os.environ.get("CC", ""))
    compiler = named or [name for name in COMPILERS if shutil.which(name)][:1]
    if not compiler:
        return f"there is no C compiler ({', '.join(COMPILERS)})"
    flags = [*shlex.split(os.environ.get("CFLAGS", "")), *shlex.split(os.environ.get("LDFLAGS", ""))]
    # With -g among the flags, too, the library tells nothing of where it was compiled.
    command = [*compiler, *FLAGS, f"-fdebug-prefix-map={root}=.", str(source), "-o", str(library), *flags, "-lm"]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except OSError as error:
        return f"{compiler[0]} cannot be run: {error.strerror}"
    if done.returncode or not library.exists():
        return f"{shlex.join(command)} failed: {done.stderr.strip()}"
    return ""


def platform(libraries: Iterable[Path]) -> str:
    """Name the platforms that libraries run on as wheels do: on Linux by the glibc whose functions they call."""
    here = next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))
    if not here.startswith("linux_"):
        return here
    minors = [OLDEST]
    for library in libraries:
        needed, versions = requirements(library.read_bytes())
        found = [re.fullmatch(r"GLIBC_2\.(\d+)(?:\.\d+)?", version) for version in versions]
        if not all(found) or not all(map(GLIBC.fullmatch, needed)):
            return here
        minors += [int(one[1]) for one in found if one]
    named = f"manylinux_2_{max(minors)}_{here.removeprefix('linux_')}"
    # An environment may say of itself that it takes none of these.
    return named if named in platform_tags() else here


def requirements(elf: bytes) -> tuple[list[str], list[str]]:
    """The libraries that a shared library needs, and the versions of their functions that it calls.

    Args:
        elf: the file; its layout is that of the System V ABI, and of the Linux Standard Base for versions.
    """
    wide, order = elf[4] == 2, "<" if elf[5] == 1 else ">"
    start = struct.unpack_from(f"{order}{'Q' if wide else 'I'}", elf, 40 if wide else 32)[0]
    size, count = struct.unpack_from(f"{order}HH", elf, 58 if wide else 46)
    section = f"{order}{'IIQQQQIIQQ' if wide else '10I'}"
    sections = [struct.unpack_from(section, elf, start + size * number) for number in range(count)]

    def text(table: int, place: int) -> str:
        begin = sections[table][4] + place
        return elf[begin : elf.index(b"\0", begin)].decode()

    needed, versions = [], []
    for _, kind, _, _, offset, length, link, entries, *_ in sections:
        if kind == _DYNAMIC:
            pairs = struct.iter_unpack(f"{order}{'QQ' if wide else 'II'}", elf[offset : offset + length])
            needed += [text(link, value) for tag, value in pairs if tag == _NEEDED]
        elif kind == _VERSIONS:
            for _ in range(entries):
                _, names, _, first, following = struct.unpack_from(f"{order}HHIII", elf, offset)
                place = offset + first
                for _ in range(names):
                    name, step = struct.unpack_from(f"{order}II", elf, place + 8)
                    versions.append(text(link, name))
                    place += step
                offset += following
    return needed, versions
