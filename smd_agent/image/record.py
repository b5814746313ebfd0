"""A record of what was written to prepare a Python, in its site folder, so that exactly that can be taken away."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from smd_agent.regular_file import read_text
from smd_agent.storage.whole_file import replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "smd_agent.install.json"
_READABLE_BY_ALL = 0o644


class Record:
    """What was written from one site folder on.

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
        """Whether a file is as it was written."""
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
