"""Preparing this Python: start-up files where there are none that work, and byte code; and taking them away again.

A record in its site folder has what was written, so that exactly that can be taken away.
"""

from __future__ import annotations

import hashlib
import json
import os
import sysconfig
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import smd_agent
from smd_agent.image import start_files
from smd_agent.image.start_state import compile_all, is_compiled, look, sources
from smd_agent.regular_file import read_text
from smd_agent.storage.atomic_file import replace_file

NAME = "smd_agent.install.json"
_READABLE_BY_ALL = 0o644


class Record:
    """The record of what was written from one site folder on.

    Args:
        folder: the site folder, which need not be there.

    Attributes:
        files: path -> digest of what was written there.
        folders: what was made to write into.

    Raises:
        OSError: there is a record that cannot be read.
        ValueError: what is there is no record.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: dict[str, str] = {}
        self.folders: list[str] = []
        if os.path.lexists(folder / NAME):
            kept = json.loads(read_text(folder / NAME))
            self.files, self.folders = dict(kept["files"]), list(kept["folders"])

    def begin(self) -> None:
        """Make the folder where it is missing, and the record in it, before anything else is written.

        Raises:
            OSError: nothing can be written there.
        """
        missing = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folders += map(str, reversed(missing))
        self.save()

    def save(self) -> None:
        """Write the record.

        Raises:
            OSError: it cannot be written.
        """
        text = json.dumps({"files": self.files, "folders": self.folders}, indent=1)
        self._put(NAME, f"{text}\n")

    def write(self, name: str, text: str) -> Path:
        """Write a file into the folder that all users can read, whatever the umask.

        Raises:
            OSError: it cannot be written.
        """
        self._put(name, text)
        path = self.folder / name
        self.files[str(path)] = digest(path)
        self.save()
        return path

    def note(self, files: Iterable[Path], folders: Iterable[Path]) -> None:
        """Note what others have written for us."""
        self.files |= {str(path): digest(path) for path in files}
        self.folders += map(str, folders)

    def owns(self, path: Path) -> bool:
        """True if a file is as it was written."""
        return str(path) in self.files and digest(path) == self.files[str(path)]

    def take_away(self) -> tuple[list[str], list[str]]:
        """Remove all of it, the record last; return what was removed, and what others have changed, which is left.

        Raises:
            OSError: something cannot be removed.
        """
        there = [path for path in self.files if os.path.lexists(path)]
        removed = [path for path in there if self.owns(Path(path))]
        for path in removed:
            os.unlink(path)
        os.unlink(self.folder / NAME)
        for folder in sorted(self.folders, key=len, reverse=True):
            # Unless others have something in it by now, or it is gone.
            with suppress(OSError):
                os.rmdir(folder)
        return removed, [path for path in there if path not in removed]

    def _put(self, name: str, text: str) -> None:
        replace_file(self.folder, name, os.fsencode(text))
        os.chmod(self.folder / name, _READABLE_BY_ALL)


def digest(path: Path) -> str:
    """A digest of a file's content; empty if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


@dataclass
class Prepared:
    """The outcome of preparing.

    Attributes:
        written: start-up files.
        compiled: how many files have got byte code.
        problem: what could not be done, and why; empty if all was.
    """

    written: list[Path] = field(default_factory=list)
    compiled: int = 0
    problem: str = ""


def prepare() -> Prepared:
    """Have this Python start the agent without any variable but that which asks for it, and have byte code for that."""
    done = Prepared()
    starts = look(by_path=False).armed
    uncompiled = [source for source in sources() if not is_compiled(source)]
    if starts and not uncompiled:
        return done
    record, refusal = _begun()
    if record is None:
        what = "byte code cannot be written" if starts else f"{start_files.PTH} cannot be written"
        done.problem = f"{what}: {refusal}"
        return done
    compiled = compile_all(uncompiled)
    record.note(compiled.files, compiled.folders)
    done.compiled = len(compiled.files)
    if compiled.problem:
        done.problem = f"byte code cannot be written ({compiled.problem})"
    if not starts:
        _write_start_files(record, done)
    if record.files:
        record.save()
    else:
        record.take_away()
    return done


def _begun() -> tuple[Record | None, str]:
    """A record in the first site folder that can be written to; None and the reason if there is none."""
    first = sysconfig.get_path("purelib")
    refusals = []
    for folder in sorted(start_files.site_folders(), key=lambda one: one != first):
        try:
            record = Record(Path(folder))
            record.begin()
        except (OSError, ValueError, KeyError, TypeError) as error:
            refusals.append(f"{getattr(error, 'strerror', None) or error}: {folder}")
            continue
        return record, ""
    return None, "; ".join(refusals)


def _write_start_files(record: Record, done: Prepared) -> None:
    root = os.path.dirname(os.path.dirname(os.path.abspath(smd_agent.__file__)))
    files = {start_files.PTH: start_files.text_of(root), start_files.START: start_files.START_TEXT}
    for name in files:
        path = record.folder / name
        if os.path.lexists(path) and not record.owns(path):
            done.problem = f"{path} is there already, but the agent is not started by it: remove it, and try again"
            return
    try:
        for name, text in files.items():
            done.written.append(record.write(name, text))
    except OSError as error:
        done.problem = f"{start_files.PTH} cannot be written ({error.strerror or error}: {record.folder})"


def take_away() -> tuple[list[str], list[str], str]:
    """Remove what `prepare` has written for this Python; return that, what others have changed, and what went wrong."""
    removed: list[str] = []
    left: list[str] = []
    problem = ""
    for folder in start_files.site_folders():
        if not os.path.lexists(os.path.join(folder, NAME)):
            continue
        try:
            gone, kept = Record(Path(folder)).take_away()
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"what {os.path.join(folder, NAME)} lists cannot be removed ({error})"
            continue
        removed += gone
        left += kept
    return removed, left, problem
