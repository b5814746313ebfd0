"""One worker's collections file, without which a finished run cannot be read."""

from __future__ import annotations

from pathlib import Path

from smd_agent.storage.whole_file import replace_file


class CollectionsFile:
    """The text that the file ought to have, and the text that it has.

    The training thread sets ``text``; ``put`` runs on the writer thread. A text counts as written once the file is in
    place, so that one that failed stays due.

    Attributes:
        path: where the file goes.
        text: what it ought to hold; None until somebody knows.
        failure: why the last attempt to write it failed; None when it did not.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text: str | None = None
        self.failure: OSError | None = None
        self._written: str | None = None

    @property
    def exists(self) -> bool:
        """Whether the file has been written, with this text or an older one."""
        return self._written is not None

    def put(self) -> None:
        """Write the text, unless it is there already.

        Raises:
            OSError: the file cannot be written; ``put`` can be called again.
        """
        text = self.text
        if text is None or text == self._written:
            return
        try:
            replace_file(self.path, text.encode())
        except OSError as error:
            self.failure = error
            raise
        self._written = text
        self.failure = None
