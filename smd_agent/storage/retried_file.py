"""A small file that is written again until it is there, such as a collections file."""

from __future__ import annotations

from pathlib import Path

from smd_agent.storage.whole_file import replace_file


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
        """Whether the file has been written, with this text or an older one."""
        return self._written is not None

    @property
    def size(self) -> int:
        """Bytes of the file as it is now."""
        return len((self._written or "").encode())

    @property
    def due(self) -> bool:
        """Whether there is a text that has not been written."""
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
