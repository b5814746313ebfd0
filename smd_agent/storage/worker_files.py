"""The small files of one worker beside its steps: collections, lost steps, what it ran with, what failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from smd_agent.formats.paths import about_path, collections_path, failures_path, lost_path
from smd_agent.storage.atomic_file import replace_file

# So many steps are listed by their numbers; the rest is counted.
_LISTED = 1000


class RetriedFile:
    """The text that a file ought to have, and the text that it has.

    Any thread sets ``text``; ``put`` runs on the writer thread. A text counts as written once the file is in place, so
    that one that failed stays due.

    Attributes:
        path: where the file goes, below the run's folder.
        text: what it ought to hold; None until somebody knows.
        failure: why the last attempt to write it failed; None when it did not.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.text: str | None = None
        self.failure: OSError | None = None
        self._written: str | None = None

    @property
    def exists(self) -> bool:
        """True if the file has been written, with this text or an older one."""
        return self._written is not None

    @property
    def size(self) -> int:
        """Bytes of the file as it is now."""
        return len((self._written or "").encode())

    @property
    def due(self) -> bool:
        """True if there is a text that has not been written."""
        return self.text is not None and self.text != self._written

    def forget(self) -> None:
        """The file is gone: it is due again."""
        self._written = None

    def put(self, root: Path) -> None:
        """Write the text into the run's folder, unless it is there already.

        Raises:
            OSError: the file cannot be written; ``put`` can be called again.
        """
        text = self.text
        if text is None or text == self._written:
            return
        try:
            replace_file(root, self.path, text.encode())
        except OSError as error:
            self.failure = error
            raise
        self._written = text
        self.failure = None


class LostSteps(RetriedFile):
    """The file of the steps that one worker could not save.

    Attributes:
        steps: global steps; any thread may add one.
        gone: how many steps were in a folder that was removed or moved.
        reason: what was the matter, as far as it is known.
    """

    def __init__(self, worker: str) -> None:
        super().__init__(lost_path(worker))
        self.steps: list[int] = []
        self.gone = 0
        self.reason = ""
        self._noted = (0, 0)

    @property
    def due(self) -> bool:
        """True if there is something that the file does not say yet."""
        now = (len(self.steps), self.gone)
        if now != self._noted:
            self._noted = now
            fields = {"count": now[0], "gone": now[1], "steps": self.steps[:_LISTED], "reason": self.reason}
            self.text = json.dumps(fields)
        return super().due

    @property
    def words(self) -> str:
        """The losses in words, to be put behind what was saved; empty if there are none."""
        lost = f"; {len(self.steps)} could not be written" if self.steps else ""
        if self.gone:
            lost += f"; {self.gone} more {'are gone with their' if self.gone > 1 else 'is gone with its'} folder"
        return lost


class WorkerFiles:
    """The content of these files as it ought to be, and as it is.

    Args:
        worker: whose they are.

    Attributes:
        worker: the same.
    """

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self.collections = RetriedFile(collections_path(worker))
        self.lost = LostSteps(worker)
        self.about = RetriedFile(about_path(worker))
        self.failures = RetriedFile(failures_path(worker))

    def __iter__(self) -> Iterator[RetriedFile]:
        return iter((self.collections, self.lost, self.about, self.failures))

    def forget(self) -> None:
        """The files are gone with their folder: all are due again."""
        for file in self:
            file.forget()
