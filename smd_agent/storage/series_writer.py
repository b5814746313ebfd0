"""The series of one worker on its way to its files: rows are gathered for a moment, then written.

A row is in its file two milliseconds after it came, or when the next one comes, whichever is later. It is written by
the thread that it comes from, which takes microseconds, as long as the disk is one of this machine and proves to be
quick. Else the writer thread does it, which makes the files, too; then it is 20 milliseconds. Until the run has begun,
rows wait in memory.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from smd_agent import guard
from smd_agent.core.modes import ModeKeys
from smd_agent.storage.series_file import SeriesFile
from smd_agent.storage.series_table import SeriesTable
from smd_agent.storage.writer_thread import Job

GATHER_SECONDS = 0.002
# Where the writer thread writes, which is woken for it.
GATHER_LONGER_SECONDS = 0.02
SLOW_SECONDS = 0.001
# So many slow writes among a number of them, and the training's thread writes no more.
_MOST_SLOW, _AMONG = 2, 1000
RETRY_SECONDS = 1.0
# How often it is looked whether the files are where they were, and how often they go to a store.
LOOK_SECONDS = 5.0
UPLOAD_SECONDS = 60.0
# What goes into a store is uploaded whole.
LARGEST_FILE = 8 << 20


class SeriesDisk(NamedTuple):
    """The way to the disk.

    submit: has something done on the writer thread.
    place: gives, there, the run's folder; an OSError says that there is none.
    failed: called with what went wrong when rows could not be written, which are tried again.
    upload: called, on the writer thread, with the name of a file that is to be brought into a store, if there is one.
    """

    submit: Callable[[Job], None]
    place: Callable[[], Path]
    failed: Callable[[Exception], None]
    upload: Callable[[str], None]


class _Pace:
    """The pace of the writes, which says whether the training's thread makes them.

    is_quick: True as long as it does.
    gather_seconds: how long rows are gathered.
    retry_at: nothing is written before that, in seconds since the epoch.
    looked_at: when the files were last looked at.
    uploaded_at: when they were last given to the store.
    """

    def __init__(self) -> None:
        self.is_quick = True
        self.gather_seconds = GATHER_SECONDS
        self.retry_at = self.looked_at = 0.0
        self.uploaded_at = time.time()
        self._writes = self._slow = 0

    def note(self, seconds: float) -> None:
        """Take note of a write."""
        self._writes += 1
        if self._writes > _AMONG:
            self._writes = self._slow = 0
        if seconds > SLOW_SECONDS:
            self._slow += 1
            if self._slow >= _MOST_SLOW:
                self.be_slow()

    def be_slow(self) -> None:
        """Leave the writes to the writer thread for good."""
        self.is_quick = False
        self.gather_seconds = GATHER_LONGER_SECONDS


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
        self._tables = {name: _Table(name, limit) for name, limit in self._limits.items()}
        # Files that others have taken the place of, and that have rows yet.
        self._ended: list[SeriesFile] = []
        self._under_way: set[SeriesFile] = set()
        self._last_segment = 0
        self._pace = _Pace()

    @property
    def takes_rows(self) -> bool:
        """True if rows are taken."""
        return bool(self._tables)

    @property
    def has_files(self) -> bool:
        """True if there is something to close."""
        return any(True for _ in self._files())

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
            if own.rows.fit(names) or file is None or file.size > LARGEST_FILE:
                file = self._next_file(own)
            row = own.rows.row(step, mode, mode_step, now, values)
            if not row:
                return
            file.waiting += row
            # A clock may be set back.
            if 0 <= now - own.written_at < self._pace.gather_seconds:
                return
            own.written_at = now
            self._write_soon(file, now)

    def begin(self, worker: str) -> None:
        """Have rows written from now on: the run has begun as this worker."""
        with self._lock:
            self._worker = worker
            for file in self._files():
                file.header = file.header._replace(worker=worker)

    def leave(self) -> None:
        """Be this worker no longer: rows that follow wait until the next ``begin``."""
        with self._lock:
            self._worker = None

    def flush(self) -> None:
        """Have all rows written that have come."""
        for file in [*self._files()]:
            self._hand_over(file)

    def close(self) -> None:
        """Close the files; a row that follows begins another one. Called on the writer thread."""
        self._upload_all()
        with self._lock:
            for file in self._files():
                self._close(file)
            self._ended.clear()
            for own in self._tables.values():
                own.file = None

    def _close(self, file: SeriesFile) -> None:
        # Its descriptor may be another file's as soon as it is closed.
        file.has_gone = file in self._under_way and file.is_open
        if not file.has_gone:
            file.close()

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
        file.trim()
        pace = self._pace
        if not 0 <= now - pace.looked_at < LOOK_SECONDS and self._worker is not None:
            pace.looked_at = now
            self._disk.submit(self._look)
        if 0 <= pace.retry_at - now < RETRY_SECONDS:
            return
        if file.is_quick and pace.is_quick and not self._under_way:
            # The lock is held: what might have to wait for a disk is not here.
            try:
                if file.append_waiting(now):
                    pace.note(time.time() - now)
                    return
            except OSError as error:
                self._note(error)
                return
        self._hand_over(file)

    def _note(self, failure: Exception) -> None:
        self._pace.retry_at = time.time() + RETRY_SECONDS
        self._disk.failed(failure)

    def _hand_over(self, file: SeriesFile) -> None:
        if self._take_over(file):
            self._disk.submit(partial(self._write_out, file))

    def _take_over(self, file: SeriesFile) -> bool:
        """Have a file written by nobody else; False if it cannot be, or another thread is at it."""
        with self._lock:
            if self._worker is None or file in self._under_way:
                return False
            self._under_way.add(file)
            return True

    # On the writer thread.

    def _write_out(self, file: SeriesFile) -> None:
        """Write what waits; in a new file if there is none."""
        try:
            failure = guard.attempt(partial(self._write, file))
        finally:
            with self._lock:
                self._under_way.discard(file)
                is_done = file in self._ended and not file.waiting
                if is_done:
                    self._ended.remove(file)
                if is_done or file.has_gone:
                    self._close(file)
        if is_done and file.name:
            self._disk.upload(file.name)
        if failure is not None:
            self._note(failure)

    def _look(self) -> None:
        """Give up the files that are not in the run's folder any more, and have the others uploaded now and then."""
        root = self._disk.place()
        with self._lock:
            files = [*self._files()]
        for file in files:
            if not file.is_below(root):
                with self._lock:
                    self._close(file)
        if not 0 <= time.time() - self._pace.uploaded_at < UPLOAD_SECONDS:
            self._pace.uploaded_at = time.time()
            self._upload_all()

    def _upload_all(self) -> None:
        with self._lock:
            names = [file.name for file in self._files() if file.name]
        for name in names:
            self._disk.upload(name)

    def _write(self, file: SeriesFile) -> None:
        while file.waiting:
            if not file.is_in_place():
                file.open(self._disk.place(), self._next_segment())
                if not file.is_quick:
                    self._pace.be_slow()
            with self._lock:
                rows = file.take()
            try:
                file.append(rows)
            except BaseException:
                with self._lock:
                    file.give_back(rows)
                raise

    def _next_segment(self) -> int:
        """A number that no earlier start of the run has given to a file, here or in a store."""
        self._last_segment = max(self._last_segment + 1, int(time.time() * 1000))
        return self._last_segment
