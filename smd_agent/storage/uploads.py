"""The way of a run from its folder into a store: a queue of files, and the thread that uploads them.

The training only enters names. What cannot be uploaded is tried again, later and later, until the program has ended
and waited for it; the order stays, so that in the store an index that is visible means an event file that is, and the
end marker comes last. A run that lies here only on its way gives its event files up once they are uploaded and many.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from smd_agent import guard, stalled_disk
from smd_agent.formats import paths
from smd_agent.formats.training_state import StorePlace
from smd_agent.printable import count_of
from smd_agent.storage import upload_pauses
from smd_agent.storage.forecast import size_text
from smd_agent.storage.kept_events import KeptEvents
from smd_agent.storage.store_stay import Earlier, Found, StoreStay
from smd_agent.storage.stores import StoreFailure, new_loop, reason_of
from smd_agent.storage.upload_pauses import UploadPauses
from smd_agent.storage.writer import Thread, start_thread

if TYPE_CHECKING:
    import asyncio

# What may wait here to be uploaded, where a run lies here on its way only.
WAITING_BYTES = 4 << 30
# Uploaded together.
_BATCH_FILES = 32
_BATCH_BYTES = 16 << 20
# A batch may take so many seconds, and one more for so many bytes.
_BATCH_SECONDS = 120.0
_BYTES_PER_SECOND = 128 << 10
# Failures of ours, one after the other, with which uploading ends.
_IN_A_ROW = 3
# Steps that the store lacks, of those that are noted for a later start.
_NOTED = 1000
# How often whoever waits for an answer looks whether the thread is still there.
_LOOK_SECONDS = 0.1


@dataclass
class _Due:
    """A file that is to be uploaded: those that have to be there before it, and the bytes of all."""

    size: int
    before: list[str] = field(default_factory=list)


class Uploads:
    """What the store lacks of a run that this process writes.

    Args:
        address: where the run goes.
        patience: seconds that ``finish`` waits at most.
        on_the_way: the folder is no place for the run to stay.

    Attributes:
        on_the_way: the same.
        failed: why nothing is uploaded any more; empty as long as it is.
        expected: the steps that are about to be saved, or have been, and are not in the store; any thread may add one.
    """

    def __init__(self, address: str, patience: float, on_the_way: bool) -> None:
        self.on_the_way = on_the_way
        self.failed = ""
        self.expected: set[int] = set()
        self._stay = StoreStay(address)
        self._patience = patience
        self._process = os.getpid()
        self._root = Path()
        self._changed = threading.Condition()
        self._asked: deque[Callable[[], None]] = deque()
        self._due: dict[str, _Due] = {}
        self._waiting = 0
        self._kept = KeptEvents(gives_up=on_the_way)
        self._thread: Thread | None = None
        self._over = False
        # Whenever the store takes something.
        self._moved = 0
        self._pauses = UploadPauses()
        # Of the thread.
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def address(self) -> str:
        """Where the run goes: the address that was asked for or, once ``enter`` has been called, the one it has got."""
        return self._stay.address

    @property
    def reason(self) -> str | None:
        """Why that is not the one that was asked for; None if it is."""
        return self._stay.reason

    @property
    def finished_before(self) -> bool:
        """Whether there was a finished run at the address that was asked for, and not one that this goes on with."""
        return self._stay.has_finished and self._stay.earlier is None

    @property
    def found(self) -> Found | None:
        """What was there of the run that this one goes on with; None where it does not go on with one."""
        return self._stay.found

    @property
    def place(self) -> StorePlace | None:
        """Where the run is, for a later start of the training; None as long as it is nowhere."""
        place = None if self.failed else self._stay.place
        return place and place._replace(waiting=tuple(sorted([*self.expected])[:_NOTED]))

    @property
    def is_whole(self) -> bool:
        """Whether the run's folder has all that was saved."""
        return self._kept.are_all

    @property
    def is_ours(self) -> bool:
        """Whether this process has made it, and not the one that it was forked from."""
        return self._process == os.getpid()

    @property
    def is_full(self) -> bool:
        """Whether so much waits here for the store that no more may."""
        return self.on_the_way and self._waiting > WAITING_BYTES

    @property
    def is_only_place(self) -> bool:
        """Whether the run is in the store and nowhere else, or will be."""
        return self.on_the_way and not self.failed

    def open(self) -> None:
        """Look whether the store is there and may be used.

        Raises:
            StoreFailure: it may not, or it does not answer in time; nothing is uploaded then.
        """
        try:
            self._thread = start_thread("smd_agent-uploads", self._run, "uploading")
        except RuntimeError as error:
            raise StoreFailure(str(error)) from error
        try:
            self._ask(self._look)
        except StoreFailure:
            # The thread closes what it has opened.
            with self._changed:
                self._over = True
                self._changed.notify_all()
            raise

    def go_on_with(self, earlier: Earlier | None) -> None:
        """Go on with the run of an earlier start, if there is one; a later start may go on with this one."""
        self._stay.earlier, self._stay.kept_fresh = earlier, True

    def enter(self, root: Path, worker: str, alone: bool, removes_old: bool) -> str | None:
        """Get a place for one worker's part of a run; None when that has worked, else the reason why not.

        Args:
            root: the folder that the run is written into.
            worker: the worker's name.
            alone: no other worker is known, so that another place beside the address will do.
            removes_old: what an earlier run has left of this worker goes.

        Raises:
            StoreFailure: the store does not do it; nothing is uploaded then.
        """
        refused: list[str] = []
        self._root = root
        self._ask(partial(self._enter, worker, alone, removes_old, refused))
        return refused[0] if refused else None

    def add(self, root: Path, name: str, *before: str) -> None:
        """Have a file of the run's folder uploaded, as it is then; ``before`` are files that must be there first."""
        if self._stay.taken:
            return
        self._root = root
        sizes = [_size(root / one) for one in (name, *before)]
        with self._changed:
            known = self._due.get(name)
            self._waiting += sum(sizes) - (known.size if known is not None else 0)
            self._due[name] = _Due(sum(sizes), [*before])
            self._changed.notify_all()

    def finish(self) -> None:
        """Wait until the store has everything, and say what it has not got when it is waited for no longer."""
        if self.failed:
            return
        begun = seen_at = time.monotonic()
        seen = -1
        with self._changed:
            self._pauses.at_exit = True
            self._pauses.over_at = 0.0
            self._changed.notify_all()
            while self._due and self._is_alive():
                now = time.monotonic()
                if self._moved != seen:
                    seen, seen_at = self._moved, now
                limits = begun + self._patience, seen_at + stalled_disk.patience(upload_pauses.STANDS_STILL)
                if now >= min(limits):
                    break
                self._changed.wait(min(min(limits) - now, 1.0))
            self._pauses.at_exit = False
            left, size = len(self._due), self._waiting
        if not left:
            # What says whose the place is does no harm where it stays: the run has its end marker.
            guard.attempt(lambda: self._ask(self._stay.release))
            self.failed = ""
            return
        self.failed = self._pauses.why or "it does not answer in time"
        stalled_disk.waited_in_vain(lambda: bool(self._due) and self._is_alive())
        files = f"{count_of(left, 'file')} ({size_text(size)})"
        verb = "are" if left > 1 else "is"
        guard.say(f"{files} of the run {verb} not in {self.address} ({self.failed}), but in {self._root}")

    def end(self) -> bool:
        """End the thread; whether the run's folder is needed no more."""
        if not self.is_ours:
            return False
        with self._changed:
            self._over = True
            done = not self._due and not self.failed
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(1.0)
        return done and self.on_the_way

    def _is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _ask(self, action: Callable[[], None]) -> None:
        """Have something done on the thread, and wait for it."""
        done = threading.Event()
        failures: list[Exception | None] = []

        def answered() -> None:
            failures.append(guard.attempt(action))
            done.set()

        with self._changed:
            self._asked.append(answered)
            self._changed.notify_all()
        limit = time.monotonic() + stalled_disk.patience(stalled_disk.STALL_SECONDS)
        while not done.wait(_LOOK_SECONDS) and self._is_alive() and time.monotonic() < limit:
            pass
        if not done.is_set():
            self.failed = self._pauses.why or "it does not answer in time"
            stalled_disk.waited_in_vain(lambda: not done.is_set() and self._is_alive())
            raise StoreFailure(self.failed)
        failure = failures[0]
        if failure is not None:
            self.failed = reason_of(failure)
            raise failure if isinstance(failure, StoreFailure) else StoreFailure(self.failed)

    # On the thread.

    def _run(self) -> None:
        failure = guard.attempt(self._work)
        if failure is not None:
            # Whoever waits for the thread sees that it has ended, and says it.
            self._pauses.note(failure)
        guard.attempt(self._stay.close)
        if self._loop is not None:
            self._loop.close()

    def _work(self) -> None:
        self._loop = new_loop()
        failures = 0
        while (job := self._next_job()) is not None:
            failure = guard.attempt(job)
            failures = 0 if failure is None else failures + 1
            if failure is not None:
                if failures >= _IN_A_ROW:
                    raise failure
                self._pauses.after(failure, has_moved=False)

    def _next_job(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._over:
                if self._asked:
                    return self._asked.popleft()
                now, stay = time.monotonic(), self._stay
                if now >= stay.renewed_at:
                    return self._renew
                uploads = bool(self._due) and stay.is_fresh
                if uploads and now >= self._pauses.over_at:
                    return self._upload_next
                until = min(stay.renewed_at, self._pauses.over_at if uploads else math.inf)
                self._changed.wait(None if until == math.inf else until - now)
        return None

    def _look(self) -> None:
        self._stay.look(self._loop)

    def _enter(self, worker: str, alone: bool, removes_old: bool, refused: list[str]) -> None:
        own = (self._root / paths.claim_path(None if alone else worker)).read_bytes()
        reason = self._stay.enter(worker, alone, removes_old, own)
        if reason is not None:
            refused.append(reason)

    def _renew(self) -> None:
        taken: list[str | None] = []
        failure = guard.attempt(lambda: taken.append(self._stay.renew()))
        if failure is not None:
            self._pauses.note(failure)
            self._tell_if_it_stands_still()
        elif taken[0] is not None:
            with self._changed:
                self.failed = taken[0]
                self._due.clear()
                self._waiting = 0
                self._changed.notify_all()
            guard.say(f"{self.failed}: nothing more is uploaded, what is saved stays in {self._root}")

    def _batch(self) -> dict[str, _Due]:
        """The files that come next; in the lock."""
        batch: dict[str, _Due] = {}
        size = 0
        for name, due in self._due.items():
            size += due.size
            if batch and (size > _BATCH_BYTES or len(batch) >= _BATCH_FILES):
                break
            batch[name] = due
        return batch

    def _upload_next(self) -> None:
        with self._changed:
            batch = self._batch()
        self._upload(batch)

    def _upload(self, batch: dict[str, _Due]) -> None:
        seconds = _BATCH_SECONDS + sum(due.size for due in batch.values()) / _BYTES_PER_SECOND
        failures: dict[str, BaseException] = {}
        done: set[str] = set()

        def put(names: list[str]) -> None:
            assert self._stay.store is not None
            failures.update(self._stay.store.put(self._root, names, seconds, self._note_progress) if names else {})

        steps = [name for name, due in batch.items() if due.before or name.startswith(paths.INDEX_FOLDER)]
        others = [name for name in batch if name not in steps and name != paths.END_MARKER]
        put([*(one for name in steps for one in batch[name].before), *others])
        for name in steps:
            batch[name].before = [one for one in batch[name].before if one in failures]
        # Who finds a step looks for its collections.
        lacks = any(name.startswith(paths.COLLECTIONS_FOLDER) for name in others if name in failures)
        ready = [name for name in steps if not lacks and not batch[name].before]
        put(ready)
        done.update(name for name in [*others, *ready] if name not in failures)
        if paths.END_MARKER in batch and len(done) == len(batch) - 1:
            put([paths.END_MARKER])
            done.update({paths.END_MARKER} - failures.keys())
        self._settle(batch, done, failures)

    def _note_progress(self) -> None:
        self._moved += 1

    def _settle(self, batch: dict[str, _Due], done: set[str], failures: dict[str, BaseException]) -> None:
        for name in [name for name, due in batch.items() if any(one in failures for one in (name, *due.before))]:
            # The folder is told of where it has gone.
            if not all((self._root / one).exists() for one in (name, *batch[name].before)):
                done.add(name)
        with self._changed:
            for name in done:
                # Unless it has changed while it was uploaded.
                if self._due.get(name) is batch[name]:
                    del self._due[name]
                    self._waiting -= batch[name].size
            if done:
                self._moved += 1
            self._pauses.after(next(iter(failures.values()), None), has_moved=bool(done))
            self._changed.notify_all()
        for name in done:
            step = paths.parse_step_file(name.rpartition("/")[2])
            if step is not None:
                self.expected.discard(step[0])
                self._kept.add(self._root, step, batch[name].size)
        if failures:
            self._tell_if_it_stands_still()

    def _tell_if_it_stands_still(self) -> None:
        if self._pauses.stands_still:
            line = f"{self.address} takes nothing ({self._pauses.why})"
            guard.say_once((self, "takes nothing"), f"{line}: the run goes on, what is saved waits in {self._root}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
