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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from smd_agent.errors import SMDebugRuntimeError
from smd_agent.formats import paths
from smd_agent.formats.addresses import is_address
from smd_agent.formats.index import Index
from smd_agent.storage.atomic_file import remove_file, replace_file
from smd_agent.storage.index_files import StepIndex
from smd_agent.storage.run_reader import RunReader
from smd_agent.storage.series_reader import SeriesFiles
from smd_agent.storage.stores import Entry, Store, StoreFailure

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


def reader_of(path: str, first: int | None, end: int | None) -> RunReader:
    """The reader of a run in a folder or, where this is an address, in a store.

    Args:
        path: the run's folder, or its address.
        first: read no step before this global step.
        end: read no step from this global step on.

    Raises:
        SMDebugRuntimeError: what knows such addresses is not installed.
    """
    return StoreReader(path, first, end) if is_address(path) else RunReader(Path(path), first, end)


def is_run(address: str) -> bool:
    """True if there is a run at an address that can be opened by now.

    Raises:
        SMDebugRuntimeError: the store cannot be read.
    """
    with _told(address):
        return bool(Store(address).find(paths.INDEX_FOLDER, paths.COLLECTIONS_FOLDER))


class StoreReader(RunReader):
    """The files of one run in a store, which need not be there yet; see ``reader_of``."""

    def __init__(self, address: str, first: int | None = None, end: int | None = None) -> None:
        with _told(address):
            self._store = Store(address)
        folder = tempfile.mkdtemp(prefix="smd_agent-reads-")
        self._finalizer = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        super().__init__(Path(folder), first, end)
        self.shown = address
        self._there: dict[str, Entry] = {}
        self._looked_at = float("-inf")
        # Event files in the order of their steps, with their sizes.
        self._sizes: list[tuple[str, int]] = []
        self._number: dict[str, int] = {}
        # How many bytes of them are in the folder, those last that were asked for last; and which pieces of large ones.
        self._here: OrderedDict[str, int] = OrderedDict()
        self._pieces: dict[str, set[int]] = {}
        self._series_there: dict[str, Entry] = {}
        self._series_looked_at = float("-inf")

    def is_there(self) -> bool:
        """True if there is anything of a run."""
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
                self._number[step.index.event_file] = len(self._sizes)
                self._sizes.append((step.index.event_file, _size_of(step.index)))
            yield step

    def series(self) -> SeriesFiles:
        """Return the files of the series, which are fetched when they are looked at."""
        return SeriesFiles(self.root, self._bring_series)

    def _bring_series(self) -> None:
        if time.monotonic() < self._series_looked_at + LOOK_SECONDS:
            return
        # In this order: the end marker comes after all else.
        has_ended = self.ended() is not None
        with _told(self.shown):
            there = {name: one for name, one in self._store.find(paths.SERIES_FOLDER).items() if _is_series(name)}
            changed = [name for name, one in there.items() if self._series_there.get(name) != one]
            for start in range(0, len(changed), _AHEAD_FILES):
                for name, content in self._store.read(dict.fromkeys(changed[start : start + _AHEAD_FILES])).items():
                    replace_file(self.root, name, content)
        for name in self._series_there.keys() - there.keys():
            remove_file(self.root, name)
        self._series_there = there
        self._series_looked_at = float("inf") if has_ended else time.monotonic()

    def _wait_for(self, path: str, place: StepIndex) -> None:
        """Wait for nothing: an index that is in a store names an event file that is."""

    def _look(self) -> None:
        """Fetch what is new of the small files, unless the last look was just now or has seen the end."""
        if paths.END_MARKER in self._there or time.monotonic() < self._looked_at + LOOK_SECONDS:
            return
        with _told(self.shown):
            # In this order: the end marker comes after all else.
            there = self._store.infos(paths.END_MARKER, paths.claim_path())
            there |= {name: one for name, one in self._store.find(*_SMALL_FOLDERS).items() if _is_known(name)}
            self._fetch_small({name: one for name, one in there.items() if self._there.get(name) != one})
        for name in self._there.keys() - there.keys():
            remove_file(self.root, name)
        self._there = there
        self._looked_at = time.monotonic()

    def _fetch_small(self, entries: Mapping[str, Entry]) -> None:
        names = sorted(entries, key=lambda name: (name == paths.END_MARKER, name))
        # Of index files, which never change, the whole is known, which saves asking for it.
        indexes = {name for name in names if name.startswith(f"{paths.INDEX_FOLDER}/") and entries[name].size}
        for start in range(0, len(names), _FILES_AT_ONCE):
            together = names[start : start + _FILES_AT_ONCE]
            places = {name: (0, entries[name].size) if name in indexes else None for name in together}
            for name, content in self._store.read(places).items():
                replace_file(self.root, name, content)
                changed = entries[name].changed or time.time()
                with suppress(OSError):
                    os.utime(self.root / name, (changed, changed))

    def _make_ready(self, index: Index, first: int, size: int) -> None:
        name, whole = index.event_file, _size_of(index)
        if name is None:
            return
        if whole > _WHOLE_BYTES:
            self._fetch_pieces(name, first, min(first + size, whole), whole)
        elif name not in self._here:
            for one, content in self._store.read(self._with_next(name, whole)).items():
                replace_file(self.root, one, content)
                self._here[one] = len(content)
        if name in self._here:
            self._here.move_to_end(name)
        while sum(self._here.values()) > _LARGEST_FOLDER and len(self._here) > 1:
            old, _ = self._here.popitem(last=False)
            self._pieces.pop(old, None)
            remove_file(self.root, old)

    def _with_next(self, name: str, whole: int) -> dict[str, tuple[int, int]]:
        """Return an event file, all of it; and small ones that follow, if the one before it has been read, too."""
        found = {name: (0, whole)}
        number = self._number.get(name)
        if number is None or (number and self._sizes[number - 1][0] not in self._here):
            return found
        left = _AHEAD_BYTES
        for other, size in self._sizes[number + 1 : number + _AHEAD_FILES]:
            if size <= _WHOLE_BYTES and other not in self._here:
                left -= size
                if left < 0:
                    break
                found[other] = 0, size
        return found

    def _fetch_pieces(self, name: str, first: int, end: int, whole: int) -> None:
        """Write pieces of a large event file where they belong, in a file that has holes elsewhere."""
        known = self._pieces.get(name, set())
        lacks = {*range(first // _PIECE_BYTES, -(-end // _PIECE_BYTES))} - known
        if not lacks:
            return
        pieces = range(min(lacks), max(lacks) + 1)
        start = pieces.start * _PIECE_BYTES
        content = self._store.read({name: (start, min(pieces.stop * _PIECE_BYTES, whole))}).get(name)
        if content is None:
            raise FileNotFoundError(2, os.strerror(2), f"{self.shown}/{name}")
        if not known:
            replace_file(self.root, name, b"")
        with open(self.root / name, "r+b") as file:
            file.seek(start)
            file.write(content)
        self._pieces[name] = known.union(pieces)
        self._here[name] = len(self._pieces[name]) * _PIECE_BYTES


@contextmanager
def _told(address: str) -> Iterator[None]:
    """Have a failure of a store told with its address."""
    try:
        yield
    except StoreFailure as failure:
        raise SMDebugRuntimeError(f"{address} cannot be read: {failure.strerror}") from failure


def _size_of(index: Index) -> int:
    payload = index.payload
    return max(map(int.__add__, payload.starts, payload.lengths), default=0)


def _is_series(name: str) -> bool:
    folder, _, last = name.rpartition("/")
    return folder == paths.SERIES_FOLDER and paths.parse_series_file(last) is not None


def _is_known(name: str) -> bool:
    """True if a file of this name is one of a run: others are not to be written anywhere."""
    folder, _, last = name.rpartition("/")
    if folder in _NOTES:
        return last.endswith(".json")
    if folder == paths.COLLECTIONS_FOLDER:
        return paths.parse_collections_file(last) is not None
    parent, _, number = folder.rpartition("/")
    return parent == paths.INDEX_FOLDER and number.isdecimal() and paths.parse_step_file(last) is not None
