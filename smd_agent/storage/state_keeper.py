"""Keeper of the training's state beside the program's checkpoints: which step each of them was written in.

Of the training's thread nothing is asked but whether something has happened in the folder, before each step, and only
in a program that has named such a folder. A thread of its own, which sleeps until something happens, looks at the disk
and writes the file, so that a process that is killed soon after a checkpoint has its state as well. Whichever of the
two sees an event takes it, under a lock, together with the step that is current: no step begins meanwhile. The step
that follows a checkpoint waits for its state, unless the disk is slow, and for all that was saved before: a training
that goes on after the checkpoint makes none of these steps anew.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from smd_agent import guard, stalled_disk
from smd_agent.core.overhead import overhead
from smd_agent.descriptors import above_streams
from smd_agent.formats.training_state import FILE_NAME, TrainingState, parse_states, states_text
from smd_agent.interpreter.never_freed import never_free
from smd_agent.regular_file import read_text
from smd_agent.stalled_disk import in_time
from smd_agent.storage.after_fork import do_in_children, leave_to_children
from smd_agent.storage.atomic_file import replace_file
from smd_agent.storage.folder_events import FolderEvents, readiness
from smd_agent.storage.writer_thread import Thread, start_thread

# How long a step waits for the state of the checkpoint before it. The program has just written to that disk, so one
# that is busy answers; in one that does not, a run waits so long once.
PATIENCE_SECONDS = 10.0
# How often it is seen whether the thread that is waited for has ended.
_GLANCE_SECONDS = 0.05

_CLOSED = select.POLLHUP | select.POLLNVAL | select.POLLERR
_LARGEST_BYTES = 1 << 22
# So many are kept.
_STATES = 1000
# What a program writes beside its checkpoints, and again and again; and what SageMaker's uploader leaves there.
_LOGS = (".log", ".txt", ".csv", ".tsv", ".jsonl", ".out", ".err", ".lock")
_NO_CHECKPOINTS = (FILE_NAME, "sagemaker-uploaded", "tfevents")


class StatesFile:
    """The states of a training, and the file beside its checkpoints that has them.

    Args:
        folder: of the checkpoints.
        earlier: states that stand in the file.
        keeps: whether this process is the one that writes it, asked when there is something to write.

    Attributes:
        folder: the same.
    """

    def __init__(self, folder: Path, earlier: Sequence[TrainingState], keeps: Callable[[], bool]) -> None:
        self.folder = folder
        self._states = [*earlier]
        self._seen = max((state.seen for state in earlier), default=-1)
        self._keeps = keeps

    def add(self, state: TrainingState) -> bool:
        """Take a state, unless there is one of its step; True if it is new."""
        is_new = state.seen > self._seen
        if is_new:
            self._seen = state.seen
            self._states.append(state)
        return is_new

    def write(self) -> None:
        """Put it in place.

        Raises:
            OSError: it cannot be written.
        """
        if self._keeps():
            write_states(self.folder, self._states)


class CheckpointThread:
    """The thread that looks at a folder when something happens there, or when it is asked to.

    Args:
        lock: held by the thread that takes what has happened.

    Attributes:
        thread: the thread itself; None before ``begin``.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self.thread: Thread | None = None
        self._lock = lock
        self._wake = -1
        self._asks: list[threading.Event] = []

    def begin(self, run: Callable[[int], None]) -> None:
        """Start it; ``run`` is called with a descriptor that can be read when it is asked, and is closed at the end."""
        woken, self._wake = map(above_streams, os.pipe())
        for end in (woken, self._wake):
            os.set_blocking(end, False)
        doing = "noting where the training stands"
        self.thread = start_thread("smd_agent-checkpoints", lambda: run(woken), doing)

    @property
    def lives(self) -> bool:
        """True if it has begun, and not ended."""
        thread = self.thread
        return thread is not None and thread.is_alive()

    @property
    def can_be_asked(self) -> bool:
        """True if it lives, and is not to end."""
        return self._wake >= 0 and self.lives

    def ask(self) -> threading.Event:
        """Have it look; what is set when it has."""
        answer = threading.Event()
        with self._lock:
            self._asks.append(answer)
            os.write(self._wake, b".")
        return answer

    def answered(self, answer: threading.Event, seconds: float) -> bool:
        """Wait for it, unless it has ended; False when it has not looked in so many seconds."""
        until = time.monotonic() + seconds
        while not answer.wait(min(_GLANCE_SECONDS, seconds)):
            if not self.lives:
                return True
            if time.monotonic() >= until:
                return False
        return True

    def take_asks(self) -> list[threading.Event]:
        """Those who have asked since the last look. The lock is held."""
        asks, self._asks = self._asks, []
        return asks

    def take_wake(self) -> int:
        """The descriptor that wakes it, and whose end is its own; -1 if it has been taken. The lock is held."""
        wake, self._wake = self._wake, -1
        return wake


class StateKeeper:
    """Writes a state for each checkpoint that comes into a folder.

    Args:
        folder: of the checkpoints, absolute. It is never made here: the program may insist on making it.
        earlier: states that stand in the file.
        now: gives the training's state; called by the training's thread, or while that begins no step.
        keeps: whether this process is the one that writes the file, asked when there is something to write.
        saved: has the program wait until all that was saved is on disk.
    """

    def __init__(
        self,
        folder: Path,
        earlier: Sequence[TrainingState],
        now: Callable[[], TrainingState],
        keeps: Callable[[], bool],
        saved: Callable[[], None],
    ) -> None:
        self._file = StatesFile(folder, earlier, keeps)
        self._now = now
        self._saved = saved
        self._lock = threading.Lock()
        self._thread = CheckpointThread(self._lock)
        self._taken: deque[tuple[bytes, TrainingState]] = deque()
        self._events: FolderEvents[TrainingState] | None = None
        self._is_ready: Callable[[float], object] | None = None
        self._patience = PATIENCE_SECONDS
        # Whether the thread looks at what has happened, and whether it is to end; whether a checkpoint has been found
        # that no step has followed yet.
        self._looks = self._stopped = self._noted = False

    @property
    def thread(self) -> Thread | None:
        """The thread that looks at the folder; None before ``start``."""
        return self._thread.thread

    def start(self) -> bool:
        """Begin to watch the folder; False, after one line, where that is not possible.

        Called by the training's thread before its first step.
        """
        failure = guard.attempt(self._start)
        if failure is not None:
            self._tell(failure)
        return failure is None

    def before_step(self) -> None:
        """Take what has happened in the folder in the step that is about to end."""
        is_ready = self._is_ready
        if is_ready is None:
            return
        try:
            # In the order in which the thread goes on with what has happened, so that none of it passes unseen.
            if not (is_ready(0) or self._lock.locked() or self._looks or self._noted):
                return
            self._check_thread()
            with self._lock:
                waits = self._take() or self._looks
            self._wait(self._thread.ask(), waits)
            if self._noted:
                self._noted = False
                self._saved()
        except (OSError, ValueError) as error:
            # As after a program has closed all files that it does not know, which ends the thread, too. Their numbers
            # may be those of others now, so they must not be closed once more.
            never_free(is_ready)
            self.forget()
            self._tell(error)

    def settle(self) -> None:
        """Have the state of a checkpoint that is complete on disk."""
        self.before_step()
        if self._thread.can_be_asked:
            answer = self._thread.ask()
            if not self._thread.answered(answer, stalled_disk.patience(stalled_disk.STALL_SECONDS)):
                stalled_disk.waited_in_vain(lambda: not answer.is_set())

    def stop(self) -> None:
        """Write nothing more."""
        leave_to_children(self.forget)
        self._is_ready = None
        with self._lock:
            wake = self._thread.take_wake()
            if wake >= 0:
                self._stopped = True
                # The thread sees that, and ends.
                os.close(wake)

    def forget(self) -> None:
        """Leave all as it is, and to the parent, in a process that a fork has made."""
        leave_to_children(self.forget)
        self._is_ready = self._events = None
        self._lock = threading.Lock()
        self._thread = CheckpointThread(self._lock)

    def _start(self) -> None:
        watch = partial(FolderEvents, self._file.folder, is_checkpoint)
        events: FolderEvents[TrainingState] = stalled_disk.in_time(watch)
        self._events = events
        self._is_ready = readiness(events.descriptor)
        do_in_children(self.forget)
        self._thread.begin(partial(self._run, events))

    def _take(self) -> bool:
        """Take what has happened, with the step that is current; whether a file is complete. The lock is held."""
        completes = False
        while self._events is not None and (happened := self._events.read()):
            self._taken.append((happened, self._now()))
            completes = completes or self._events.completes(happened)
        return completes

    def _wait(self, answer: threading.Event, waits: bool) -> None:
        if waits and self._patience:
            with overhead.spending():
                if not self._thread.answered(answer, self._patience):
                    self._patience = 0.0

    def _check_thread(self) -> None:
        if not self._thread.lives:
            raise ValueError("the thread that does it has ended")

    # On the thread.

    def _run(self, events: FolderEvents[TrainingState], woken: int) -> None:
        poll = select.poll()
        poll.register(events.descriptor, select.POLLIN)
        poll.register(woken, select.POLLIN)
        while not any(state & _CLOSED for _, state in poll.poll()):
            with self._lock:
                if self._events is None:
                    return
                guard.attempt(partial(os.read, woken, 1 << 16))
                asks = self._thread.take_asks()
                failure = guard.attempt(self._take)
                self._looks = bool(self._taken)
            if failure is not None:
                self._tell(failure)
                return
            failure = guard.attempt(partial(self._look, events))
            if failure is not None:
                self._tell(failure)
            self._looks = False
            for answer in asks:
                answer.set()
        with self._lock:
            # Else the program has closed them, and their numbers may be those of others.
            if self._stopped:
                self._events = None
                events.close()
                os.close(woken)

    def _look(self, events: FolderEvents[TrainingState]) -> None:
        found = False
        while self._taken:
            for state in events.written(*self._taken.popleft()):
                found = self._file.add(state) or found
        if found:
            self._file.write()
            self._noted = True

    def _tell(self, error: Exception) -> None:
        line = f"where the training stands is not noted in {path_of(self._file.folder)} ({guard.describe(error)})"
        guard.say_once(("training state", self._file.folder), line)


def is_checkpoint(name: str) -> bool:
    """True if a file of this name may be a checkpoint, or a part of one."""
    return not name.endswith(_LOGS) and not any(part in name for part in _NO_CHECKPOINTS)


def path_of(folder: Path) -> Path:
    """The file in a folder of checkpoints."""
    return folder / FILE_NAME


def read_states(folder: Path) -> list[TrainingState]:
    """The states of earlier starts; none where there is no file, or no checkpoint beside it.

    Raises:
        OSError: the file cannot be read, or not in time.
        ValueError: it is not such a file.
    """
    return in_time(partial(_read_states, folder))


def write_states(folder: Path, states: Sequence[TrainingState]) -> None:
    """Put the file in place at once: whoever reads it finds the old one or the new one.

    Raises:
        OSError: it cannot be written.
    """
    replace_file(folder, FILE_NAME, states_text(states[-_STATES:]).encode())


def _read_states(folder: Path) -> list[TrainingState]:
    try:
        text = read_text(path_of(folder), largest=_LARGEST_BYTES)
    except FileNotFoundError:
        return []
    # Without a checkpoint there is nothing that could go on.
    return parse_states(text) if any(map(is_checkpoint, os.listdir(folder))) else []
