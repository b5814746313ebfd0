"""The file beside a large run that says what its index files say, so that the run is opened quickly the next time.

It is never needed: what it does not hold, or holds of an index file that has changed since, is read from the index
files. It is written by who reads, once the run goes on no more, where that is allowed; and put in place whole.
"""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from smd_agent.formats.index_cache import CachedFile, UnusableCache, decode, encode
from smd_agent.formats.paths import END_MARKER, INDEX_CACHE
from smd_agent.regular_file import open_to_read, read_bytes
from smd_agent.storage.claim import Claim, is_gone
from smd_agent.storage.whole_file import replace_file

if TYPE_CHECKING:
    from smd_agent.formats.index import Index, IndexParser
    from smd_agent.formats.index_cache import Signature

# So many index files must have been read one by one for a cache to be written.
WORTHWHILE = 1000
LARGEST_BYTES = 1 << 27

# A file that was changed less than this before it was read may change again without a new time. Seconds.
_SETTLED_AFTER = 3.0
# A run of another machine that has written nothing for so long goes on no more. Seconds.
_OLD_SECONDS = 3600.0
# The disk must have room for so many of the file.
_ROOM = 10


class IndexCache:
    """The cache of one run's index files.

    Args:
        root: the run's folder.
        parser: of its index files.
    """

    def __init__(self, root: Path, parser: IndexParser) -> None:
        self._root = root
        self._parser = parser
        self._read: dict[str, CachedFile] | None = None
        self._current: list[CachedFile] = []
        self._new = 0

    def get(self, path: str, signature: Signature) -> Index | None:
        """Return what an index file says; None if that is not known.

        Args:
            path: of the file, below the index folder.
            signature: of the file as it is now.
        """
        if self._read is None:
            self._read = self._load()
        # Each is asked for once, and the rest need not be kept.
        file = self._read.pop(path, None)
        if file is None or file.signature != signature:
            return None
        self._current.append(file)
        return file.index

    def add(self, path: str, signature: Signature, index: Index) -> None:
        """Take in an index file that had to be read."""
        if time.time() - signature[0] / 1e9 > _SETTLED_AFTER:
            self._current.append(CachedFile(path, signature, index))
            self._new += 1

    def save(self) -> None:
        """Write the file if that saves much the next time, and the run goes on no more."""
        if self._new < WORTHWHILE or not self._goes_on_no_more():
            return
        self._new = 0
        # A folder that cannot be written, or has no room, is no failure.
        with suppress(OSError):
            content = encode(self._current)
            if len(content) <= LARGEST_BYTES and shutil.disk_usage(self._root).free > _ROOM * len(content):
                replace_file(self._root, INDEX_CACHE, content)

    def _load(self) -> dict[str, CachedFile]:
        try:
            with open_to_read(self._root / INDEX_CACHE) as file:
                content = read_bytes(file, LARGEST_BYTES + 1)
            return decode(content, self._parser) if len(content) <= LARGEST_BYTES else {}
        except (OSError, UnusableCache, MemoryError):
            return {}

    def _goes_on_no_more(self) -> bool:
        if (self._root / END_MARKER).exists():
            return True
        owner = Claim(self._root).owner()
        last = max(file.signature[0] for file in self._current)
        return (owner is not None and is_gone(owner)) or time.time() - last / 1e9 > _OLD_SECONDS
