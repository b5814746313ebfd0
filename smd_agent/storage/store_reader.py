"""A run in a store as a reader sees it: what is small is fetched into a folder, of event files what is asked for.

The folder is there as long as the reader is. Index files, collections and notes are fetched as they come; a run is
looked at again after two seconds at the earliest. Of an event file that is not small the parts are fetched in which
tensors are asked for. Whoever reads steps in their order gets the next small files together.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import weakref
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from smd_agent.errors import SMDebugRuntimeError
from smd_agent.formats import paths
from smd_agent.storage.index_files import StepIndex
from smd_agent.storage.reader import RunReader
from smd_agent.storage.stores import Entry, Store, StoreFailure
from smd_agent.storage.whole_file import remove_file, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from smd_agent.formats.index import Index

LOOK_SECONDS = 2.0
# A smaller event file is fetched whole, of a larger one pieces of this size.
_WHOLE_BYTES = 8 << 20
_PIECE_BYTES = 1 << 20
# Of small files fetched together, and of files fetched at once when a run is opened.
_AHEAD_BYTES = 16 << 20
_AHEAD_FILES = 32
_FILES_AT_ONCE = 256
# Of event files in the folder.
_LARGEST_FOLDER = 1 << 30
_NOTES = (paths.LOST_FOLDER, paths.ABOUT_FOLDER, paths.FAILURES_FOLDER)
_SMALL_FOLDERS = (paths.INDEX_FOLDER, paths.COLLECTIONS_FOLDER, *_NOTES)


def is_run(address: str) -> bool:
    """Whether there is a run at an address that can be opened by now.

    Raises:
        SMDebugRuntimeError: the store cannot be read.
    """
    try:
        return bool(Store(address).find(paths.INDEX_FOLDER, paths.COLLECTIONS_FOLDER))
    except StoreFailure as failure:
        raise SMDebugRuntimeError(f"{address} cannot be read: {failure.strerror}") from failure


class StoreReader(RunReader):
    """The files of one run in a store.

    Args:
        address: of the run; it need not be there yet.
        first: read no step before this global step.
        end: read no step from this global step on.

    Raises:
        SMDebugRuntimeError: what knows such addresses is not installed.
    """

    def __init__(self, address: str, first: int | None = None, end: int | None = None) -> None:
        try:
            self._store = Store(address)
        except StoreFailure as failure:
            raise SMDebugRuntimeError(f"{address} cannot be read: {failure.strerror}") from failure
        folder = tempfile.mkdtemp(prefix="smd_agent-reads-")
        self._finalizer = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        super().__init__(Path(folder), first, end)
        self.shown = address
        self._there: dict[str, Entry] = {}
        self._looked_at = float("-inf")
        # Event files in the order of their steps, and what of them is in the folder: None is all of it.
        self._order: list[Index] = []
        self._place: dict[str, int] = {}
        self._here: OrderedDict[str, set[int] | None] = OrderedDict()
        self._sizes: dict[str, int] = {}

    def is_there(self) -> bool:
        """Whether there is anything of a run."""
        self._look()
        return bool(self._there)

    def ended(self) -> float | None:
        """Return when the run said that it ended, in seconds since the epoch; None if it has not."""
        self._look()
        return super().ended()

    def collections_files(self) -> dict[str, Path]:
        """Return the collections files by worker, in the order of their names."""
        self._look()
        return super().collections_files()

    def new_indexes(self) -> Iterator[StepIndex]:
        """Read the index files that have appeared since the last call, in the order of steps and workers."""
        self._look()
        for step in super().new_indexes():
            if step.index.event_file is not None:
                self._place[step.index.event_file] = len(self._order)
                self._order.append(step.index)
            yield step

    def _wait_for(self, path: str, place: StepIndex) -> None:
        """Wait for nothing: an index that is in a store names an event file that is."""

    def _look(self) -> None:
        """Fetch what is new of the small files, unless the last look was just now or has seen the end."""
        if paths.END_MARKER in self._there or time.monotonic() < self._looked_at + LOOK_SECONDS:
            return
        try:
            # In this order: the end marker comes after all else.
            there = self._store.infos(paths.END_MARKER, paths.claim_path())
            there |= {name: one for name, one in self._store.find(*_SMALL_FOLDERS).items() if _is_known(name)}
            changed = {name: one for name, one in there.items() if self._there.get(name) != one}
            self._fetch_small(changed)
        except StoreFailure as failure:
            raise SMDebugRuntimeError(f"{self.shown} cannot be read: {failure.strerror}") from failure
        for name in self._there.keys() - there.keys():
            remove_file(self.root, name)
        self._there = there
        self._looked_at = time.monotonic()

    def _fetch_small(self, entries: Mapping[str, Entry]) -> None:
        names = sorted(entries, key=lambda name: (name == paths.END_MARKER, name))
        for start in range(0, len(names), _FILES_AT_ONCE):
            # Of files that never change the whole is known, which saves asking for it.
            sizes = {name: entries[name].size for name in names[start : start + _FILES_AT_ONCE]}
            places = {
                name: (0, size) if size and name.startswith(f"{paths.INDEX_FOLDER}/") else None
                for name, size in sizes.items()
            }
            for name, content in self._store.read(places).items():
                replace_file(self.root, name, content)
                changed = entries[name].changed or time.time()
                with suppress(OSError):
                    os.utime(self.root / name, (changed, changed))

    def _make_ready(self, index: Index, first: int, size: int) -> None:
        name = index.event_file
        if name is None or self._here.get(name, ()) is None:
            return
        whole = _size_of(index)
        if whole <= _WHOLE_BYTES:
            self._fetch_whole(name, self._with_next(index, name))
            return
        known = self._here.setdefault(name, set()) or set()
        self._here[name] = known
        pieces = range(first // _PIECE_BYTES, (min(first + size, whole) + _PIECE_BYTES - 1) // _PIECE_BYTES)
        self._fetch_pieces(name, [piece for piece in pieces if piece not in known], whole)
        known.update(pieces)
        self._note(name, len(known) * _PIECE_BYTES)

    def _with_next(self, index: Index, name: str) -> dict[str, tuple[int, int]]:
        """Return an event file, all of it; and small ones that follow, if the one before it has been read, too."""
        found = {name: (0, _size_of(index))}
        place = self._place.get(name)
        if place is None or (place and self._order[place - 1].event_file not in self._here):
            return found
        left = _AHEAD_BYTES
        for other in self._order[place + 1 : place + _AHEAD_FILES]:
            size = _size_of(other)
            left -= size if size <= _WHOLE_BYTES else 0
            if left < 0:
                break
            if size <= _WHOLE_BYTES and other.event_file is not None and other.event_file not in self._here:
                found[other.event_file] = 0, size
        return found

    def _fetch_whole(self, wanted: str, places: Mapping[str, tuple[int, int]]) -> None:
        for name, content in self._store.read(places).items():
            replace_file(self.root, name, content)
            self._here[name] = None
            self._sizes[name] = len(content)
        if wanted in self._here:
            self._note(wanted, self._sizes[wanted])

    def _fetch_pieces(self, name: str, pieces: list[int], whole: int) -> None:
        """Write pieces of a large event file where they belong, in a file that has holes elsewhere."""
        if not pieces:
            return
        path = self.root / name
        if not path.exists():
            replace_file(self.root, name, b"")
        # Pieces that follow each other are one request.
        runs = [[pieces[0], pieces[0] + 1]]
        for piece in pieces[1:]:
            if piece == runs[-1][1]:
                runs[-1][1] += 1
            else:
                runs.append([piece, piece + 1])
        with open(path, "r+b") as file:
            for begin, end in runs:
                part = begin * _PIECE_BYTES, min(end * _PIECE_BYTES, whole)
                content = self._store.read({name: part}).get(name)
                if content is None:
                    raise FileNotFoundError(2, os.strerror(2), str(path))
                file.seek(part[0])
                file.write(content)

    def _note(self, name: str, size: int) -> None:
        """Remember how large a file is that is about to be read, and remove older ones where all are too large."""
        self._sizes[name] = size
        self._here.move_to_end(name)
        while sum(self._sizes.values()) > _LARGEST_FOLDER and len(self._here) > 1:
            old, _ = self._here.popitem(last=False)
            del self._sizes[old]
            remove_file(self.root, old)


def _size_of(index: Index) -> int:
    payload = index.payload
    return max(map(int.__add__, payload.starts, payload.lengths), default=0)


def _is_known(name: str) -> bool:
    """Whether a file of this name is one of a run: others are not to be written anywhere."""
    folder, _, last = name.rpartition("/")
    if folder in _NOTES:
        return last.endswith(".json")
    if folder == paths.COLLECTIONS_FOLDER:
        return paths.parse_collections_file(last) is not None
    parent, _, number = folder.rpartition("/")
    return parent == paths.INDEX_FOLDER and number.isdecimal() and paths.parse_step_file(last) is not None
