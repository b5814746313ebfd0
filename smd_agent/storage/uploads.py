"""The way of a run from its folder into a store: a queue of files, which a thread uploads.

The training only enters names. What cannot be uploaded is tried again, later and later, until the program has ended
and waited for it; the order stays, so that in the store an index that is visible means an event file that is, and the
end marker comes last. A run that lies here only on its way gives its event files up once they are uploaded and many.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from smd_agent import guard, stalled_disk
from smd_agent.formats import paths
from smd_agent.formats.index import IndexParser
from smd_agent.formats.training_state import StorePlace, TrainingState
from smd_agent.printable import count_of, rough_size_text
from smd_agent.regular_file import LARGEST_TEXT_BYTES, read_text
from smd_agent.storage import store_thread
from smd_agent.storage.atomic_file import remove_file
from smd_agent.storage.store_session import Earlier, Found, StoreSession, is_place_of
from smd_agent.storage.store_thread import Due, StoreThread, UploadQueue
from smd_agent.storage.stores import StoreFailure
from smd_agent.storage.writer_thread import Job

# Where a run lies here on its way only: what may wait to be uploaded.
WAITING_BYTES = 4 << 30
# A batch may take so many seconds, and one more for so many bytes.
_BATCH_SECONDS = 120.0
_BYTES_PER_SECOND = 128 << 10
_FORKED = "a process made by a fork uploads nothing"
# Steps that the store lacks, of those that are noted for a later start.
_NOTED = 1000


class Uploads:
    """The uploads of one worker's part of a run into a store; before ``open``, and after a failure, nothing happens.

    Args:
        address: where the run goes; empty where it stays in its folder.
        patience: seconds that ``finish`` waits at most.
        on_the_way: the folder is no place for the run to stay.

    Attributes:
        on_the_way: the same.
        finished_before: the address that was asked for, if it has a finished run that this one does not go on with.
        found: what was there of the run that this one goes on with; None where it does not go on with one there.
        is_whole: whether the run's folder still has all that was saved.
    """

    def __init__(self, address: str = "", patience: float = 0.0, on_the_way: bool = False) -> None:
        self.on_the_way = on_the_way
        self.finished_before = ""
        self.found: Found | None = None
        self.is_whole = True
        self._patience = patience
        self._process = os.getpid()
        self._session = StoreSession(address)
        self._thread = StoreThread(self._next_job, self._session.close)
        self._root = Path()
        # The one that has a place.
        self._worker = ""
        # Why nothing is uploaded.
        self._failed = "it is not open"
        self._queue = UploadQueue(self._thread.changed)

    @property
    def address(self) -> str | None:
        """The address at which the run is to be read; None if that is its folder."""
        return self._session.address if self.on_the_way and not self._failed else None

    @property
    def relocated_because(self) -> str | None:
        """The reason why the run is not at the address that was asked for; None if it is."""
        return None if self._failed else self._session.relocated_because

    @property
    def words(self) -> str:
        """The place of the run beside its folder, for its summary."""
        beside = self._worker and not (self._failed or self.on_the_way)
        return f"; it is in {self._session.address}, too" if beside else ""

    @property
    def place(self) -> StorePlace | None:
        """The place of the run, for a later start of the training; None as long as it is in no store."""
        place = None if self._failed or not self._worker else self._session.place
        return place and place._replace(waiting=tuple(sorted([*self._queue.expected])[:_NOTED]))

    @property
    def obstacle(self) -> str | None:
        """The reason why no further step may be written into the run's folder."""
        if not self.on_the_way or self._queue.waiting <= WAITING_BYTES:
            return None
        return f"too much of the run waits to be taken by {self._session.address}"

    def open(self) -> None:
        """Look whether the store is there and may be used.

        Raises:
            StoreFailure: it may not, or it does not answer in time; nothing is uploaded then.
        """
        self._thread.start()
        try:
            has_finished = self._thread.ask(lambda: self._session.open(self._thread.loop))
        except StoreFailure:
            # The thread closes what it has opened.
            self._thread.end(0.0)
            raise
        self._failed = ""
        self.finished_before = self._session.address if has_finished else ""

    def go_on_with(self, last: TrainingState | None) -> StorePlace | None:
        """Go on with the run of an earlier start, if it went here; its place. A later start may go on with this one."""
        self._session.kept_fresh = True
        if last is None or last.store is None or not is_place_of(last.store, self._session.address):
            return None
        self._session.earlier = Earlier(last.store, last.seen)
        self.finished_before = ""
        return last.store

    def enter(self, root: Path, worker: str, alone: bool, removes_old: bool) -> str | None:
        """Get a place for one worker's part of a run; None when that has worked, else the reason why not.

        Where the store fails, one line says so and the run stays in its folder.

        Args:
            root: the folder that the run is written into.
            worker: the worker's name.
            alone: no other worker is known, so that another place beside the address will do.
            removes_old: what an earlier run has left of this worker goes.
        """
        if self._process != os.getpid():
            self.begin_anew()
        if self._failed == _FORKED:
            guard.say_once((self, "forked", root), f"{_FORKED}: what it saves stays in {root}")
        if self._failed or worker == self._worker:
            return None
        self._root, self._worker = root, ""
        session = self._session
        try:
            own = (root / paths.claim_path(None if alone else worker)).read_bytes()
            refused = self._thread.ask(partial(session.enter, worker, alone, removes_old, own))
        except OSError as failure:
            guard.say(f"{session.address} is not used ({failure.strerror}): the run stays in {root}")
            self._fail(str(failure.strerror))
            return None
        if refused is None:
            self._worker = worker
            self.found = session.found
        return refused

    def begin_anew(self) -> None:
        """Upload nothing, in a process that a fork has made: what uploads is its parent's."""
        self._worker = ""
        self._queue = UploadQueue(self._thread.changed)
        self.found = None
        self.is_whole = True
        if not self._failed:
            self._fail(_FORKED)

    def expect(self, step: int) -> None:
        """Note that a step is about to be saved."""
        if self._worker and not self._failed:
            self._queue.expected.add(step)

    def expect_no_more(self, step: int) -> None:
        """Note that a step could not be saved."""
        self._queue.expected.discard(step)

    def add(self, root: Path, name: str, *before: str) -> None:
        """Have a file of the run's folder uploaded, as it is then; ``before`` are files that must be there first."""
        if self._worker:
            self._root = root
            self._queue.add(root, name, before)

    def add_late(self, root: Path, name: str) -> None:
        """Have a file uploaded that the run is whole without, unless the program has waited for the store already.

        Any thread may call this.
        """
        if self._worker and root == self._root:
            self._queue.add(root, name, late=True)

    def add_all_in(self, root: Path, folder: str) -> None:
        """Have all files uploaded that are in a folder of the run's, or below it."""
        for path in sorted((root / folder).rglob("*")):
            if path.is_file():
                self.add(root, path.relative_to(root).as_posix())

    def add_missing(self, root: Path, steps: Iterable[tuple[int, str]]) -> None:
        """Have steps uploaded that an earlier start has left in the run's folder, where they are not in the store."""
        if not self._worker:
            return
        there = frozenset() if self.found is None else self.found.there
        for part in sorted({*steps} - there):
            # An index that is damaged is of no use there either.
            guard.attempt(partial(self._add_step, root, paths.index_path(*part)))

    def _add_step(self, root: Path, index: str) -> None:
        event = IndexParser().parse(read_text(root / index, largest=LARGEST_TEXT_BYTES)).event_file
        if event is None:
            self.add(root, index)
        elif (root / event).is_file():
            # Else it has been given up: of a run that lies here on its way only, many are.
            self.add(root, index, event)

    def finish(self) -> None:
        """Wait until the store has everything, and say what it has not got when it is waited for no longer."""
        if self._failed or not self._worker:
            return
        left, size = self._wait()
        if not left:
            # What says whose the place is does no harm where it stays: the run has its end marker.
            guard.attempt(lambda: self._thread.ask(self._session.release))
            return
        stalled_disk.waited_in_vain(lambda: bool(self._queue.due) and self._thread.is_alive)
        self._fail(self._thread.pauses.why_in_vain)
        files = f"{count_of(left, 'file')} ({rough_size_text(size)})"
        verb = "are" if left > 1 else "is"
        guard.say(f"{files} of the run {verb} not in {self._session.address} ({self._failed}), but in {self._root}")

    def end(self) -> bool:
        """Upload nothing more; whether the run's folder is needed no more."""
        if self._process != os.getpid():
            return False
        self._thread.end(1.0)
        return self.on_the_way and bool(self._worker) and not self._queue.due and not self._failed

    def _fail(self, why: str) -> None:
        self._failed = why

    def _wait(self) -> tuple[int, int]:
        """Wait until nothing waits, as long as that has a point; the files that do, and their bytes."""
        thread, pauses = self._thread, self._thread.pauses
        begun = time.monotonic()
        with thread.changed:
            pauses.at_exit = True
            pauses.over_at = 0.0
            thread.changed.notify_all()
            while self._queue.due and thread.is_alive:
                still = stalled_disk.patience(store_thread.STANDS_STILL)
                limit = min(begun + self._patience, max(begun, pauses.moved_at) + still)
                seconds = limit - time.monotonic()
                if seconds <= 0:
                    break
                thread.changed.wait(min(seconds, 1.0))
            pauses.at_exit = False
            self._queue.is_over = True
            return len(self._queue.due), self._queue.waiting

    # On the thread.

    def _next_job(self) -> tuple[Job, float]:
        session, over_at = self._session, self._thread.pauses.over_at
        may_upload = session.is_fresh and max(time.monotonic(), over_at) < session.renewed_at
        return (self._upload, over_at) if self._queue.due and may_upload else (self._renew, session.renewed_at)

    def _renew(self) -> None:
        try:
            taken = self._session.renew()
        except StoreFailure as failure:
            self._thread.pauses.note(failure)
            self._tell_if_it_stands_still()
            return
        if taken is not None:
            with self._thread.changed:
                self._worker = ""
                self._fail(taken)
                self._queue.clear()
            guard.say(f"{taken}: nothing more is uploaded, what is saved stays in {self._root}")

    def _upload(self) -> None:
        batch = self._queue.batch()
        seconds = _BATCH_SECONDS + sum(due.size for due in batch.values()) / _BYTES_PER_SECOND
        failures: dict[str, BaseException] = {}
        left = {*batch}

        def put(*names: str) -> None:
            assert self._session.store is not None
            failed = self._session.store.put(self._root, names, seconds, self._thread.pauses.note_progress)
            failures.update(failed)
            left.difference_update({*names} - failed.keys())

        steps = [name for name in batch if name.startswith(f"{paths.INDEX_FOLDER}/")]
        events = [event for name in steps for event in batch[name].before]
        put(*events, *(name for name in batch if name not in steps and name != paths.END_MARKER))
        for name in steps:
            batch[name].before = [event for event in batch[name].before if event in failures]
        # Who finds a step looks for its collections.
        if not any(name.startswith(paths.COLLECTIONS_FOLDER) for name in failures):
            put(*(name for name in steps if not batch[name].before))
        if left == {paths.END_MARKER}:
            put(paths.END_MARKER)
        # The folder is told of where it has gone.
        left = {name for name in left if all((self._root / one).exists() for one in (name, *batch[name].before))}
        self._settle(batch, left, next(iter(failures.values()), None))

    def _settle(self, batch: dict[str, Due], left: set[str], failure: BaseException | None) -> None:
        """Take note of a batch, of which some files are left, because of the first failure."""
        done = [name for name in batch if name not in left]
        with self._thread.changed:
            self._thread.pauses.after(failure, has_moved=bool(done))
            self._queue.settle(batch, done)
        for name in done:
            step = paths.parse_step_file(name.rpartition("/")[2])
            if step is not None:
                self._queue.expected.discard(step[0])
                self._give_up_before(paths.event_path(*step), batch[name].size)
        if failure is not None:
            self._tell_if_it_stands_still()

    def _give_up_before(self, event: str, size: int) -> None:
        """Give the oldest event files up that are in the store, where they lie here on their way only and are many."""
        if not self.on_the_way:
            return
        for spare in self._queue.spare(event, size):
            self.is_whole = False
            guard.attempt(partial(remove_file, self._root, spare))
            guard.attempt((self._root / spare).parent.rmdir)

    def _tell_if_it_stands_still(self) -> None:
        pauses = self._thread.pauses
        if pauses.stands_still:
            line = f"{self._session.address} takes nothing ({pauses.why})"
            guard.say_once((self, "takes nothing"), f"{line}: the run goes on, what is saved waits in {self._root}")
