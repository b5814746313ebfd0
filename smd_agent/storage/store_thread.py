"""The thread that talks to a store, and the queue of what is to be uploaded.

All requests of one process's uploads are made on the thread, and on its event loop.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from smd_agent import guard, stalled_disk
from smd_agent.storage.stores import NO_ANSWER, StoreFailure, new_loop, reason_of
from smd_agent.storage.writer_thread import Job, Thread, start_thread

if TYPE_CHECKING:
    import asyncio

    T = TypeVar("T")

# Failures of ours, one after the other, with which the thread ends.
_IN_A_ROW = 3
# How often whoever waits for an answer looks whether the thread is still there.
_LOOK_SECONDS = 0.1
# In seconds. After a failure there is a pause, which doubles.
FIRST_PAUSE, LONGEST_PAUSE, LONGEST_AT_EXIT = 0.25, 30.0, 2.0
# A store that has taken nothing for so long is told of, and is not waited for any longer at exit.
STANDS_STILL = 30.0
# Where a run lies here on its way only: what is kept of the event files that are in the store.
KEPT_BYTES = 256 << 20
# Uploaded together.
_BATCH_FILES = 32
_BATCH_BYTES = 16 << 20


class UploadPauses:
    """The pauses of one process's uploads.

    Attributes:
        why: what the last failure was; empty if there was none.
        over_at: when the next files may be uploaded, by ``time.monotonic``.
        moved_at: when the store has taken something for the last time, by the same.
        at_exit: whether the program waits for the uploads.
    """

    def __init__(self) -> None:
        self.why = ""
        self.over_at = self.moved_at = 0.0
        self.at_exit = False
        self._pause = 0.0
        self._failing_since: float | None = None

    @property
    def why_in_vain(self) -> str:
        """The reason why the store is waited for in vain."""
        return self.why or NO_ANSWER

    @property
    def stands_still(self) -> bool:
        """True if the store has taken nothing for long."""
        return self._failing_since is not None and time.monotonic() - self._failing_since > STANDS_STILL

    def note_progress(self) -> None:
        """The store has taken something."""
        self.moved_at = time.monotonic()

    def note(self, failure: BaseException) -> None:
        """The store has failed, not with files."""
        self.why = reason_of(failure)
        self._failing_since = self._failing_since or time.monotonic()

    def after(self, failure: BaseException | None, has_moved: bool) -> None:
        """Files were uploaded.

        Args:
            failure: of one of them; None if all are in the store.
            has_moved: whether any is.
        """
        if has_moved:
            self.note_progress()
            self._failing_since = None
        if failure is None:
            self._pause = self.over_at = 0.0
            return
        self.note(failure)
        longest = LONGEST_AT_EXIT if self.at_exit else LONGEST_PAUSE
        self._pause = FIRST_PAUSE if has_moved else min(max(2 * self._pause, FIRST_PAUSE), longest)
        self.over_at = time.monotonic() + self._pause


@dataclass
class Due:
    """A file that is to be uploaded: those that have to be there before it, and the bytes of all."""

    size: int
    before: list[str]


class UploadQueue:
    """The files of a run that are to be uploaded, and its steps that are not in the store.

    Args:
        lock: of the files.

    Attributes:
        due: files by name.
        waiting: bytes of these.
        expected: steps that are about to be saved, or have been, and are not in the store; any thread may add one.
        is_over: whether nobody waits for it any more, and what comes late is not taken.
    """

    def __init__(self, lock: threading.Condition) -> None:
        self.due: dict[str, Due] = {}
        self.waiting = 0
        self.expected: set[int] = set()
        self.is_over = False
        self._lock = lock
        # Event files that are in the store, and here; oldest first.
        self._kept: deque[tuple[str, int]] = deque()
        self._kept_bytes = 0

    def add(self, root: Path, name: str, before: Iterable[str] = (), late: bool = False) -> None:
        """Enter a file of the run's folder, as it is then; ``before`` are files that must be there first."""
        due = Due(sum(size_of(root / one) for one in (name, *before)), [*before])
        with self._lock:
            if late and self.is_over:
                return
            self.is_over = False
            known = self.due.get(name)
            self.waiting += due.size - (0 if known is None else known.size)
            self.due[name] = due
            self._lock.notify_all()

    def clear(self) -> None:
        """Give up what waits; the lock is held."""
        self.due.clear()
        self.waiting = 0
        self._lock.notify_all()

    def batch(self) -> dict[str, Due]:
        """The files that come next."""
        batch: dict[str, Due] = {}
        size = 0
        with self._lock:
            for name, due in self.due.items():
                size += due.size
                if batch and (size > _BATCH_BYTES or len(batch) >= _BATCH_FILES):
                    break
                batch[name] = due
        return batch

    def settle(self, batch: dict[str, Due], done: Iterable[str]) -> None:
        """Take files of a batch out, unless one has changed while it was uploaded; the lock is held."""
        for name in done:
            if self.due.get(name) is batch[name]:
                del self.due[name]
                self.waiting -= batch[name].size
        self._lock.notify_all()

    def spare(self, event: str, size: int) -> Iterator[str]:
        """Note an event file that is in the store; the oldest of such files, where they are many."""
        self._kept.append((event, size))
        self._kept_bytes += size
        while self._kept_bytes > KEPT_BYTES:
            event, size = self._kept.popleft()
            self._kept_bytes -= size
            yield event


class StoreThread:
    """A thread that does what it is asked for, and else the next job when that is due.

    Args:
        next_job: gives that job, and when it is due, by ``time.monotonic``; called in the lock.
        close: what the jobs have opened.

    Attributes:
        changed: the lock; told of whatever the next job depends on.
        pauses: after failures of the store.
        loop: the event loop; None before the thread has begun.
    """

    def __init__(self, next_job: Callable[[], tuple[Job, float]], close: Job) -> None:
        self.changed = threading.Condition()
        self.pauses = UploadPauses()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._next_job = next_job
        self._close = close
        self._asked: deque[Job] = deque()
        self._over = False
        self._thread: Thread | None = None

    @property
    def is_alive(self) -> bool:
        """True while there is a thread to do anything."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin.

        Raises:
            StoreFailure: there can be no thread.
        """
        try:
            self._thread = start_thread("smd_agent-uploads", self._run, "uploading")
        except RuntimeError as error:
            raise StoreFailure(str(error)) from error

    def ask(self, action: Callable[[], T]) -> T:
        """Have something done on the thread, and wait for what comes of it.

        Raises:
            StoreFailure: it has failed, or takes too long.
        """
        answers: list[T] = []
        failures: list[Exception | None] = []
        done = threading.Event()

        def answer() -> None:
            failures.append(guard.attempt(lambda: answers.append(action())))
            done.set()

        with self.changed:
            self._asked.append(answer)
            self.changed.notify_all()
        limit = time.monotonic() + stalled_disk.patience(stalled_disk.STALL_SECONDS)
        while not done.wait(_LOOK_SECONDS) and self.is_alive and time.monotonic() < limit:
            pass
        if not done.is_set():
            stalled_disk.waited_in_vain(lambda: not done.is_set() and self.is_alive)
            raise StoreFailure(self.pauses.why_in_vain)
        failure = failures[0]
        if failure is None:
            return answers[0]
        raise failure if isinstance(failure, StoreFailure) else StoreFailure(reason_of(failure))

    def end(self, seconds: float) -> None:
        """Have the thread do nothing more, and wait so long until it is done with what it does."""
        with self.changed:
            self._over = True
            self.changed.notify_all()
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        failure = guard.attempt(self._work)
        if failure is not None:
            # Whoever waits for the thread sees that it has ended, and says it.
            self.pauses.note(failure)
        guard.attempt(self._close)
        if self.loop is not None:
            self.loop.close()

    def _work(self) -> None:
        self.loop = new_loop()
        failures = 0
        while (job := self._due_job()) is not None:
            failure = guard.attempt(job)
            failures = 0 if failure is None else failures + 1
            if failure is not None:
                if failures >= _IN_A_ROW:
                    raise failure
                self.pauses.after(failure, has_moved=False)

    def _due_job(self) -> Job | None:
        with self.changed:
            while not self._over:
                if self._asked:
                    return self._asked.popleft()
                job, due_at = self._next_job()
                seconds = due_at - time.monotonic()
                if seconds <= 0:
                    return job
                self.changed.wait(None if seconds == math.inf else seconds)
        return None


def size_of(path: Path) -> int:
    """The bytes of a file; 0 where it is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
