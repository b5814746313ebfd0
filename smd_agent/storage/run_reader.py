"""A run's folder as a reader sees it: which steps are there by now, and one saved tensor at a time.

Other processes may write while we read. A file counts once it has its final name; an index names an event
file that is complete. Reading never walks the event files and holds one record at a time.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from smd_agent.config import env
from smd_agent.errors import (
    DamagedRecord,
    SMDebugRuntimeError,
    SMDebugTypeError,
    TensorUnavailableForStep,
)
from smd_agent.formats import paths
from smd_agent.formats.event_decoder import Form, SavedTensor, decode_tensor, peek_form
from smd_agent.formats.index import Index, Names
from smd_agent.formats.scalar_columns import Column, Numbers, Rows, scalar_value
from smd_agent.formats.tfrecord import RecordError
from smd_agent.printable import printable, shortened
from smd_agent.regular_file import NotARegularFile
from smd_agent.storage import open_runs
from smd_agent.storage.event_file_reader import HEAD_BYTES, head_of, payload_of, read_payload, read_range, read_records
from smd_agent.storage.index_files import IndexFiles, StepIndex, change_time, names_in
from smd_agent.storage.series_reader import SeriesFiles

logger = logging.getLogger("smd_agent")

_Key = TypeVar("_Key")
_Kept = TypeVar("_Kept")

EVENT_FILE_POLL_SECONDS = 2.0
# In bytes; nearly all of it can be the name.
_LARGEST_SCALAR = 1 << 14
# Numbers are read together with what lies between them, up to so many bytes, and so many times their own.
_LARGEST_COLUMN = 1 << 24
_MOST_BETWEEN = 32
# Other numbers of the same tensors lie within so many bytes.
_AROUND = 1 << 12
# Of a file that is asked twice, so many bytes are read.
_WHOLE = 1 << 20
# What was made for a key and is wanted again: so many at a time.
_MOST_KEPT = 64


class _Records(NamedTuple):
    """Records of one event file: its bytes or a part of them, and where in these each record begins."""

    data: bytes | None
    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]


class RunReader:
    """The files of one run in a folder. ``shown`` is what messages call it.

    ``patient`` is whether to wait for an event file that is announced and not there.

    Args:
        root: the run's folder; it need not exist yet.
        first: read no step before this global step.
        end: read no step from this global step on.
    """

    def __init__(self, root: Path, first: int | None = None, end: int | None = None) -> None:
        self.root = root
        self._root = self.shown = os.fspath(root)
        self.patient = True
        self._indexes = IndexFiles(root, 0 if first is None else first, end)
        self._places: dict[tuple[Names, tuple[str, ...]], npt.NDArray[np.int64]] = {}
        self._last_read = "", 0, b""
        self._columns: dict[tuple[tuple[str, ...], bytes, bool], Column] = {}
        self._retry_limit = env.event_file_retry_limit()

    def is_there(self) -> bool:
        """True if there is a folder."""
        return self.root.is_dir()

    def ended(self) -> float | None:
        """Return when the run said that it ended, in seconds since the epoch; None if it has not."""
        try:
            return (self.root / paths.END_MARKER).stat().st_mtime
        except OSError:
            return None

    def collections_files(self) -> dict[str, Path]:
        """Return the collections files by worker, in the order of their names; to be called before `new_indexes`.

        Of a run that this process writes, all steps that have ended are there afterwards.
        """
        open_runs.bring_up_to_date(self.root)
        folder = self.root / paths.COLLECTIONS_FOLDER
        workers = {name: paths.parse_collections_file(name) for name in sorted(names_in(folder))}
        return {worker: folder / name for name, worker in workers.items() if worker is not None}

    @property
    def problems(self) -> dict[str, str]:
        """The problem of each index file that cannot be read, by its path below the run's root."""
        return self._indexes.problems

    def workers(self) -> set[str]:
        """Return the workers that have an index file in the first folder of them."""
        return self._indexes.workers()

    def new_indexes(self) -> Iterator[StepIndex]:
        """Read the index files that have appeared or changed since the last call, in the order of steps and workers."""
        return self._indexes.new()

    def steps_of(self, worker: str) -> list[int]:
        """Return the steps of which there is an index file of a worker, by the files' names alone."""
        return self._indexes.steps_of(worker)

    def index_of(self, step: int, worker: str) -> StepIndex | None:
        """Read one index file; None where it cannot be read."""
        return self._indexes.index_of(step, worker)

    def series(self) -> SeriesFiles:
        """Return the files of the series."""
        return SeriesFiles(self.root)

    def read(self, place: StepIndex, name: str) -> SavedTensor:
        """Read one tensor.

        Raises:
            TensorUnavailableForStep: the step has no value under this name, or its event file is gone.
            DamagedRecord: the bytes are not those that were written.
            SMDebugRuntimeError: its event file cannot be read, or it is too large for the memory.
            SMDebugTypeError: NumPy has no type for the values.
        """
        index = place.index
        location = index.payload.location(name)
        if location is None or index.event_file is None:
            raise TensorUnavailableForStep(name, index.mode_step, index.mode)
        path, shown = (f"{root}/{index.event_file}" for root in (self._root, self.shown))
        start, length = location
        try:
            self._make_ready(index, start, length)
            try:
                known = self._known_bytes(path, start, length)
                payload = read_payload(path, start, length) if known is None else payload_of(known)
            except FileNotFoundError:
                self._wait_for(path, place)
                payload = read_payload(path, start, length)
            tensor = decode_tensor(payload)
        except FileNotFoundError:
            raise TensorUnavailableForStep(name, index.mode_step, index.mode) from None
        except (RecordError, NotARegularFile) as error:
            raise DamagedRecord(shown, name, place.step, _reason(error)) from None
        except OSError as error:
            raise SMDebugRuntimeError(f"{printable(shown)} cannot be read: {error.strerror}") from None
        except MemoryError:
            what = f"{shortened(name)} at step {place.step}"
            raise SMDebugRuntimeError(f"{what} is too large for the memory that there is") from None
        if tensor.tag != name:
            raise DamagedRecord(shown, name, place.step, f"its place holds {shortened(tensor.tag)}")
        return tensor

    def bring(self, place: StepIndex, names: Sequence[str]) -> None:
        """Read the bytes of small tensors of one step at once, which `read` and `form` then need not do one by one."""
        self._records_of(place, tuple(names))

    def form(self, place: StepIndex, name: str) -> Form | None:
        """Return a tensor's dtype and shape from the head of its record, unchecked; None if that is not possible."""
        location, event_file = place.index.payload.location(name), place.index.event_file
        if location is None or event_file is None:
            return None
        try:
            self._make_ready(place.index, *location)
            path, (start, length) = f"{self._root}/{event_file}", location
            record = self._known_bytes(path, start, length) or read_range(path, start, min(length, HEAD_BYTES))
            return peek_form(head_of(record))
        except (OSError, SMDebugTypeError):
            return None

    def numbers(self, place: StepIndex, names: Iterable[str]) -> dict[str, float]:
        """Read the numbers that are stored under some of these names at once.

        Those that are stored as a float64 scalar are read, and what is not damaged; for the rest there is `read`.
        """
        payload, path = place.index.payload, f"{self._root}/{place.index.event_file}"
        places = {name: location for name in names if (location := payload.location(name)) is not None}
        wanted = sorted((start, length, name) for name, (start, length) in places.items() if length <= _LARGEST_SCALAR)
        values: dict[str, float] = {}
        with suppress(OSError):
            if wanted:
                self._make_ready(place.index, wanted[0][0], sum(wanted[-1][:2]) - wanted[0][0])
            records = read_records(path, ((start, length) for start, length, _ in wanted))
            for (_, _, name), record in zip(wanted, records, strict=True):
                value = scalar_value(name, record)
                if value is not None:
                    values[name] = value
        return values

    def column(self, place: StepIndex, names: tuple[str, ...]) -> Numbers:
        """Read the numbers stored under these names at once; all of them must be stored at the step.

        Returns:
            Two arrays of as many elements as there are names: the numbers, and which of them are known. What is no
            single number is not, nor what is damaged or lies elsewhere; for that there is `read`.
        """
        found = self._records_of(place, names)
        if found is None:
            return np.zeros(len(names)), np.zeros(len(names), bool)
        if found.data is None:
            return self._column_by_name(place, names)
        return self._column_of(names, found.data, found, scalars=True).numbers(found.data, found.starts)

    def rows(self, place: StepIndex, names: tuple[str, ...]) -> Rows:
        """Read the elements of the small tensors among those of these names, all of them stored at the step.

        What is not small, has no element, is no number, is damaged or lies elsewhere is left to `read`.
        """
        found = self._records_of(place, names)
        if found is None or found.data is None:
            return []
        return self._column_of(names, found.data, found, scalars=False).rows(found.data, found.starts)

    def _column_of(self, names: tuple[str, ...], data: bytes, found: _Records, scalars: bool) -> Column:
        kind = names, found.lengths.tobytes(), scalars
        return _kept(self._columns, kind, lambda: Column(names, found.lengths, data, found.starts, scalars))

    def _known_bytes(self, path: str, start: int, length: int) -> bytes | None:
        """Return a record out of what was read last; None if that does not have it."""
        known_path, begin, data = self._last_read
        if known_path != path or start < begin or start + length > begin + len(data):
            return None
        return data[start - begin : start - begin + length]

    def _records_of(self, place: StepIndex, names: tuple[str, ...]) -> _Records | None:
        """Return where records lie in bytes of the event file, without bytes where that takes too many.

        None if there are no records, or the file cannot be read.
        """
        payload = place.index.payload
        if not names or place.index.event_file is None:
            return None
        chosen = _kept(self._places, (payload.tensors, names), lambda: _positions(payload.tensors, names))
        starts, lengths = (np.frombuffer(numbers, np.int64)[chosen] for numbers in (payload.starts, payload.lengths))
        first = int(starts.min())
        size = int((starts + lengths).max()) - first
        if size > max(_LARGEST_SCALAR, min(_LARGEST_COLUMN, _MOST_BETWEEN * int(lengths.sum()))):
            return _Records(None, starts, lengths)
        try:
            data, begin = self._bytes_around(place.index, first, size)
        except OSError:
            return None
        return _Records(data, starts - begin, lengths)

    def _make_ready(self, index: Index, first: int, size: int) -> None:
        """Have bytes of an event file in the folder; a run in a store is not there at once."""

    def _bytes_around(self, index: Index, first: int, size: int) -> tuple[bytes, int]:
        """Return bytes of a file, and where they begin; what was read last is taken again if it has them."""
        path = f"{self._root}/{index.event_file}"
        known_path, begin, data = self._last_read
        if known_path != path or first < begin or first + size > begin + len(data):
            begin = max(first - _AROUND, 0)
            most = first - begin + size + _AROUND
            if known_path == path:
                # Who asks twice asks again, and most files are read faster than they are opened.
                begin, most = 0, max(first + size + _AROUND, _WHOLE)
            self._make_ready(index, begin, most)
            data = read_range(path, begin, most)
            self._last_read = path, begin, data
        return data, begin

    def _column_by_name(self, place: StepIndex, names: tuple[str, ...]) -> Numbers:
        found = self.numbers(place, names)
        return np.array([found.get(name, 0.0) for name in names]), np.array([name in found for name in names])

    def _wait_for(self, path: str, place: StepIndex) -> None:
        """Wait for an event file that its index announces: on shared disks it may show up later.

        It will not come any more when the run has ended, when the worker has written a later step, or when
        its index is older than the wait could last.
        """
        if not self.patient:
            return
        index_path = self.root / paths.index_path(place.step, place.worker)
        limit = time.time() + self._retry_limit * EVENT_FILE_POLL_SECONDS
        written = change_time(index_path)
        if written is not None:
            limit = min(limit, written / 1e9 + self._retry_limit * EVENT_FILE_POLL_SECONDS)
        while time.time() < limit and self.ended() is None and not self._has_later_step(place):
            time.sleep(EVENT_FILE_POLL_SECONDS)
            if os.path.exists(path):
                return

    def _has_later_step(self, place: StepIndex) -> bool:
        index_root = self.root / paths.INDEX_FOLDER
        for folder in names_in(index_root):
            if folder >= paths.index_folder(place.step):
                steps = (paths.parse_step_file(name) for name in names_in(index_root / folder))
                if any(step and step[1] == place.worker and step[0] > place.step for step in steps):
                    return True
        return False


def _positions(tensors: Names, names: tuple[str, ...]) -> npt.NDArray[np.int64]:
    return np.array([tensors.positions[name] for name in names], np.int64)


def _reason(error: RecordError | NotARegularFile) -> str:
    return str(error.strerror) if isinstance(error, NotARegularFile) else str(error)


def _kept(known: dict[_Key, _Kept], key: _Key, make: Callable[[], _Kept]) -> _Kept:
    """Return what was made for a key, made now if it is not known any more."""
    if key not in known:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[key] = make()
    return known[key]
