"""The series of one worker on its way to its files.

A row is written by the thread that it comes from, which takes microseconds, as long as the disk is one of this machine
and proves to be quick; so is the file that it goes into. Else the writer thread does both: rows are gathered for it for
a moment. Until the run has begun, rows wait in memory.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from smd_agent import guard
from smd_agent.core.modes import ModeKeys
from smd_agent.storage.local_disks import is_local
from smd_agent.storage.series_file import LOOK_SECONDS as FILE_LOOK_SECONDS
from smd_agent.storage.series_file import SeriesFile
from smd_agent.storage.series_table import SeriesTable
from smd_agent.storage.writer_thread import Job

# Where the writer thread writes, which is woken for it.
GATHER_SECONDS = 0.02
# Rows of so many bytes are gathered no longer.
_MANY_BYTES = 1 << 16
# A write of the training's thread that takes longer than the first is a slow one; of a hundred writes the slow ones may
# take the second. Else the writer thread writes for a minute, the next time for two, and so on.
SLOW_SECONDS, MOST_SLOW_SECONDS = 0.001, 0.05
_AMONG = 100
# A single write that took long has waited for a busy machine, and counts as this; one that took so long for the disk.
_MOST_OF_ONE_SECONDS, _STANDS_STILL_SECONDS = 0.02, 0.5
_SLOW_FOR_SECONDS = 60.0
RETRY_SECONDS = 1.0
# How often it is looked whether the files are where they were, and how often they go to a store.
LOOK_SECONDS = 5.0
UPLOAD_SECONDS = 60.0
# What goes into a store is uploaded whole.
LARGEST_FILE = 8 << 20


class OtherRows(Protocol):
    """Another place that gets the rows, too."""

    def add(
        self, table: str, step: int, mode: ModeKeys, seconds: float, names: tuple[str, ...], values: Sequence[float]
    ) -> object:
        """Take a row; ``seconds`` are those since the epoch."""

    def write(self) -> object:
        """Write those that wait; on the writer thread."""


class SeriesDisk(NamedTuple):
    """The way to the disk.

    submit: has something done on the writer thread.
    place: gives, there, the run's folder; an OSError says that there is none.
    failed: called with what went wrong when rows could not be written, which are tried again.
    upload: called, on the writer thread, with the name of a file that is to be brought into a store, if there is one.
    also: gets each row that is kept; None if nobody does.
    """

    submit: Callable[[Job], None]
    place: Callable[[], Path]
    failed: Callable[[Exception], None]
    upload: Callable[[str], None]
    also: OtherRows | None = None


class _Pace:
    """The pace of the writes, which says whether the training's thread makes them. Times are seconds since the epoch.

    is_writing: True while it makes one.
    slow_until: the writer thread writes until then.
    retry_at: nothing is written before that.
    looked_at: when the files were last looked at.
    uploaded_at: when they were last given to the store.
    """

    def __init__(self) -> None:
        self.is_writing = False
        self.slow_until = self.retry_at = self.looked_at = 0.0
        self.uploaded_at = time.time()
        self._slow_for = _SLOW_FOR_SECONDS
        self._writes = 0
        self._slow_seconds = 0.0

    def is_quick(self, now: float) -> bool:
        """True if the training's thread may write."""
        if not self.slow_until:
            return True
        if now < self.slow_until:
            return False
        self.slow_until = 0.0
        return True

    def note(self, now: float, seconds: float) -> None:
        """Take note of a write of the training's thread."""
        self._writes += 1
        if self._writes > _AMONG:
            self._writes, self._slow_seconds = 0, 0.0
        if seconds > SLOW_SECONDS:
            stood_still = seconds > _STANDS_STILL_SECONDS
            self._slow_seconds += seconds if stood_still else min(seconds, _MOST_OF_ONE_SECONDS)
            if self._slow_seconds > MOST_SLOW_SECONDS:
                self.be_slow(now + self._slow_for)
                self._slow_for *= 2

    def be_slow(self, until: float = math.inf) -> None:
        """Leave the writes to the writer thread."""
        self.slow_until = until
        self._slow_seconds = 0.0


class _Past:
    """The files before those that are open: the number of the last one, and the bytes of all that are closed."""

    def __init__(self) -> None:
        self.segment = 0
        self.size = 0


class _Table:
    """A table, the file that its rows go into, and when that was written last, in seconds since the epoch."""

    def __init__(self, name: str, limit: int) -> None:
        self.rows = SeriesTable(name, limit)
        self.file: SeriesFile | None = None
        self.written_at = 0.0


class SeriesWriter:
    """Takes the rows of one worker.

    Args:
        limits: size of each table in bytes; empty if nothing is taken.
        disk: the way to it.

    Attributes:
        after: the step that this start of the run goes on after; -1 if it begins one.
        takes_rows: whether rows are taken.
    """

    def __init__(self, limits: Mapping[str, int], disk: SeriesDisk) -> None:
        self._limits = limits
        self._disk = disk
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything, in a process that a fork has made."""
        # A thread that a fork has left behind may hold the old one for ever.
        self._lock = threading.RLock()
        self.after = -1
        self._start = os.urandom(6).hex()
        # None as long as the run has not begun.
        self._worker: str | None = None
        # The run's folder, where it is on a disk of this machine: there, files are made by the thread of their row.
        self._place: Path | None = None
        self._tables = {name: _Table(name, limit) for name, limit in self._limits.items()}
        self.takes_rows = bool(self._tables)
        # Files that others have taken the place of, and that have rows yet.
        self._ended: list[SeriesFile] = []
        self._past = _Past()
        self._pace = _Pace()

    @property
    def has_files(self) -> bool:
        """True if there is something to close."""
        return any(True for _ in self._files())

    @property
    def size(self) -> int:
        """Bytes of all files that have been written."""
        with self._lock:
            return self._past.size + sum(file.size for file in self._files())

    def add(
        self, table: str, step: int, mode: ModeKeys, mode_step: int, names: tuple[str, ...], values: Sequence[float]
    ) -> None:
        """Take a row; see ``core.series``."""
        now = time.time()
        with self._lock:
            own = self._tables.get(table)
            if own is None:
                return
            file = own.file
            is_new = names is not own.rows.names and own.rows.fit(names)
            if is_new or file is None or file.size > LARGEST_FILE:
                file = self._next_file(own)
            row = own.rows.row(step, mode, mode_step, now, values)
            if not row:
                return
            if self._disk.also is not None:
                self._disk.also.add(table, step, mode, now, names, values)
            if file.is_quick and self._write_at_once(file, row, now):
                return
            file.waiting += row
            if not self._may_write_here(file, now):
                # A clock may be set back.
                if 0 <= now - own.written_at < GATHER_SECONDS and len(file.waiting) < _MANY_BYTES:
                    return
                own.written_at = now
            self._write_soon(file, now)

    def _write_at_once(self, file: SeriesFile, row: bytes, now: float) -> bool:
        """Write a row on this thread, as nearly all are; False where there is more to do first. The lock is held."""
        pace = self._pace
        if file.waiting or file.is_handed or pace.is_writing or pace.slow_until:
            return False
        if not (0 <= now - pace.looked_at < LOOK_SECONDS and 0 <= now - file.looked_at < FILE_LOOK_SECONDS):
            return False
        pace.is_writing = True
        try:
            file.append(row)
        except OSError as failure:
            file.waiting += row
            self._note(failure)
        finally:
            pace.is_writing = False
        pace.note(now, time.time() - now)
        return True

    def begin(self, worker: str) -> None:
        """Have rows written from now on: the run has begun as this worker."""
        with self._lock:
            self._worker = worker
            for file in self._files():
                file.header = file.header._replace(worker=worker)

    def leave(self) -> None:
        """Be this worker no longer: rows that follow wait until the next ``begin``."""
        with self._lock:
            self._worker = self._place = None

    def flush(self) -> None:
        """Have all rows written that have come."""
        with self._lock:
            for file in [*self._files()]:
                self._hand_over(file)

    def close(self) -> None:
        """Close the files; a row that follows begins another one. Called on the writer thread."""
        if self._disk.also is not None:
            self._disk.also.write()
        self._upload_all()
        with self._lock:
            self._place = None
            for file in self._files():
                self._past.size += file.size
                file.close()
            self._ended.clear()
            for own in self._tables.values():
                own.file = None

    def _files(self) -> Iterator[SeriesFile]:
        yield from self._ended
        for own in self._tables.values():
            if own.file is not None:
                yield own.file

    def _next_file(self, own: _Table) -> SeriesFile:
        if own.file is not None:
            self._ended.append(own.file)
            self._hand_over(own.file)
        own.file = SeriesFile(own.rows.header(self._worker or "", self._start, self.after))
        return own.file

    def _write_soon(self, file: SeriesFile, now: float) -> None:
        """Write what waits, or have it written; the lock is held."""
        if file.trim() and self._worker is not None:
            guard.say_once((self, "trimmed"), "rows of the series are missing: the disk does not take them in time")
        pace = self._pace
        # A signal handler of the program may train, too.
        if pace.is_writing or 0 <= pace.retry_at - now < RETRY_SECONDS:
            return
        if not 0 <= now - pace.looked_at < LOOK_SECONDS and self._worker is not None:
            pace.looked_at = now
            self._disk.submit(self._look)
        if not (self._may_write_here(file, now) and self._write_here(file, now)):
            self._hand_over(file)

    def _may_write_here(self, file: SeriesFile, now: float) -> bool:
        is_quick = file.is_quick if file.name else self._place is not None and self._worker is not None
        return is_quick and not file.is_handed and self._pace.is_quick(now)

    def _write_here(self, file: SeriesFile, now: float) -> bool:
        """Write what waits on this thread; False if the file, or the place for one, has gone."""
        pace = self._pace
        pace.is_writing = True
        try:
            is_there = (bool(file.name) or self._make(file)) and file.append_waiting(now)
        except OSError as failure:
            self._note(failure)
            return True
        finally:
            pace.is_writing = False
        pace.note(now, time.time() - now)
        return is_there

    def _make(self, file: SeriesFile) -> bool:
        """Make a file on this thread; False where the writer thread has to look why that cannot be done."""
        if self._place is None:
            return False
        try:
            file.open(self._place, self._next_segment(), is_quick=True)
        except OSError:
            self._place = None
            return False
        return True

    def _note(self, failure: Exception) -> None:
        self._pace.retry_at = time.time() + RETRY_SECONDS
        self._disk.failed(failure)

    def _hand_over(self, file: SeriesFile) -> None:
        """Have what waits by then written by the writer thread; the lock is held."""
        if self._worker is not None and not file.is_handed:
            file.is_handed = True
            self._disk.submit(partial(self._write_out, file))

    # On the writer thread.

    def enter(self, root: Path) -> None:
        """The run's folder is there, and ours."""
        self._place = root if is_local(root) else None

    def _write_out(self, file: SeriesFile) -> None:
        """Write what waits; to a new file if there is none. One that others have taken the place of is closed then."""
        failure = None
        while failure is None:
            with self._lock:
                rows = file.take()
                file.is_handed = bool(rows)
            if not rows:
                break
            failure = guard.attempt(partial(self._write, file, rows))
        with self._lock:
            if failure is not None:
                file.give_back(rows)
                file.is_handed = False
            has_ended = file in self._ended and not file.waiting
            if has_ended:
                self._ended.remove(file)
                self._past.size += file.size
                file.close()
        if has_ended and file.name:
            self._disk.upload(file.name)
        if failure is not None:
            self._note(failure)

    def _write(self, file: SeriesFile, rows: bytearray) -> None:
        if not file.is_in_place():
            root = self._disk.place()
            file.open(root, self._next_segment(), is_local(root))
            if not file.is_quick:
                self._pace.be_slow()
        file.append(rows)

    def _look(self) -> None:
        """Give up the files that are not in the run's folder any more, and have the others uploaded now and then."""
        root = self._disk.place()
        with self._lock:
            if root != self._place:
                self._place = None
            files = [*self._files()]
        for file in files:
            if not file.is_below(root):
                with self._lock:
                    file.close()
        if not 0 <= time.time() - self._pace.uploaded_at < UPLOAD_SECONDS:
            self._pace.uploaded_at = time.time()
            self._upload_all()

    def _upload_all(self) -> None:
        with self._lock:
            names = [file.name for file in self._files() if file.name]
        for name in names:
            self._disk.upload(name)

    def _next_segment(self) -> int:
        """A number that no earlier start of the run has given to a file, here or in a store."""
        with self._lock:
            self._past.segment = max(self._past.segment + 1, int(time.time() * 1000))
            return self._past.segment
