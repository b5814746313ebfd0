"""The background thread: it takes filled blocks and finished steps and puts them on disk.

Of a run that goes to a store, `smd_agent.storage.uploads` has a second one, which is started here, too.

Memory between the training thread and the disk is a fixed set of blocks. When all of them are waiting for the disk the
training thread waits for one to come free, and gives up on the step when the disk has not moved for
``stalled_disk.STALL_SECONDS``.
From then on nobody waits again until it has moved.
The thread runs a handful of system calls and checksums for each block, all of which release the interpreter lock; it
encodes nothing.
Large values are copied into blocks by a compiled function where the package was installed with it, else by NumPy.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent import guard, stalled_disk
from smd_agent.interpreter.real_threads import RealThread, allocate_lock, are_replaced

BLOCK_BYTES = 4 << 20
SLAB_BLOCKS = 8
DEFAULT_BUDGET_BYTES = 256 << 20

_HUGE_PAGE_BYTES = 2 << 20

Thread = threading.Thread | RealThread
Job = Callable[[], None]
Bytes = npt.NDArray[np.uint8]
Copy = Callable[[Bytes, Bytes], None]
LIBRARY = Path(__file__).with_name("copy.so")
# Must be that of the library, whose file may be left over from another release.
_INTERFACE = 1


def start_thread(name: str, work: Callable[[], None], doing: str = "writing") -> Thread:
    """Have something done in the background, by a thread that does not keep the program from ending.

    Args:
        name: of the thread.
        work: fails with one line and no more.
        doing: what that line calls it.

    Raises:
        RuntimeError: there are as many threads as there may be, or the program has ended.
    """

    # What it is given to do fails by itself: without it everything that follows would be lost.
    @guard.fence(doing, again=True)
    def lasting() -> None:
        work()

    thread: Thread
    if are_replaced():
        thread = RealThread(target=lasting, name=name)
    else:
        thread = threading.Thread(target=lasting, name=name, daemon=True)
    thread.start()
    return thread


class Block:
    """A reusable piece of an event file on its way to disk.

    ``checks`` tells the thread which ranges of the block belong to the running checksum of a large record and where
    a finished checksum has to be put: ``(start, end)`` or ``(position, -1)``, in order.
    """

    __slots__ = ("checks", "data", "used", "view")

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self.data = data
        self.view = data.data
        self.used = 0
        self.checks: list[tuple[int, int]] = []


class _Watch:
    """The look that the thread takes every so often beside its jobs."""

    def __init__(self, look: Job, seconds: float) -> None:
        self.look = look
        self.seconds = seconds
        self.due = 0.0


class Writer:
    """A queue bounded in bytes and the thread that empties it.

    Args:
        budget_bytes: memory the blocks may take.
        on_failure: called, on the thread, with the exception of a job that failed.
        stall_seconds: how long the disk may stand still before the training thread stops waiting for it.

    Attributes:
        blocks: number of blocks there may be.
    """

    def __init__(
        self,
        budget_bytes: int = DEFAULT_BUDGET_BYTES,
        on_failure: Callable[[Exception], None] | None = None,
        stall_seconds: float = stalled_disk.STALL_SECONDS,
    ) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._free: SimpleQueue[Block] = SimpleQueue()
        self.blocks = self._spare_blocks = max(2, budget_bytes // BLOCK_BYTES)
        self._slab: list[npt.NDArray[np.uint8]] = []
        self._on_failure = on_failure
        self._stall_seconds = stall_seconds
        # Pieces and blocks written and jobs done; and how many there were when a wait was in vain.
        self._moved = 0
        self._stood_at = -1
        self._thread: Thread | None = None
        self._watch: _Watch | None = None

    def take_block(self) -> Block | None:
        """An empty block, or None when the disk stands still and no more memory may be used."""
        try:
            return self._free.get_nowait()
        except Empty:
            if self._spare_blocks:
                self._spare_blocks -= 1
                return Block(self._memory())
        block = None
        while block is None and self._moved != self._stood_at:
            block = self._wait_for_block()
        return block

    def _wait_for_block(self) -> Block | None:
        seen = self._moved
        try:
            return self._free.get(timeout=self._stall_seconds)
        except Empty:
            if self._moved == seen:
                self._give_up(seen)
            return None

    def _give_up(self, seen: int) -> None:
        if self._stood_at != seen:
            self._stood_at = seen
            stalled_disk.waited_in_vain(self._stands_still)

    def _stands_still(self) -> bool:
        return self._moved == self._stood_at and self._thread is not None and self._thread.is_alive()

    def _memory(self) -> npt.NDArray[np.uint8]:
        if not self._slab:
            # NumPy asks for huge pages, which need this alignment; copying into them is a quarter faster.
            room = np.empty(SLAB_BLOCKS * BLOCK_BYTES + _HUGE_PAGE_BYTES, np.uint8)
            start = -room.ctypes.data % _HUGE_PAGE_BYTES
            self._slab = [room[start + i * BLOCK_BYTES :][:BLOCK_BYTES] for i in range(SLAB_BLOCKS)]
        return self._slab.pop()

    def note_progress(self) -> None:
        """The disk has taken something; for jobs on the thread."""
        self._moved += 1

    def written(self, block: Block) -> None:
        """Make a block available again that has been written; for jobs on the thread."""
        self._moved += 1
        self.give_back(block)

    def give_back(self, block: Block) -> None:
        """Make a block available again that was not handed over; any thread may call this."""
        block.used = 0
        block.checks.clear()
        self._free.put(block)

    def submit(self, job: Job) -> None:
        """Run ``job`` on the thread, after all jobs submitted before it; starts the thread with the first one."""
        if self._thread is None:
            self._thread = start_thread("smd_agent-writer", self._run)
        self._jobs.put(job)

    def watch(self, look: Job, seconds: float) -> None:
        """Call ``look`` on the thread every so many seconds, as long as that runs; starts it."""
        self._watch = _Watch(look, seconds)
        # Wakes the thread, which then waits no longer than that.
        self.submit(self.note_progress)

    def drain(self, last_look: bool = True) -> bool:
        """Wait until everything submitted so far is done; False when the disk stood still instead.

        Without ``last_look`` a disk that has been waited for in vain is not waited for again until it has moved.
        """
        if self._thread is None:
            return True
        if not last_look and self._moved == self._stood_at:
            return False
        reached = allocate_lock()
        reached.acquire()
        self._jobs.put(reached.release)
        seen, since = self._moved, time.monotonic()
        while not reached.acquire(timeout=0.05):
            if self._moved != seen:
                seen, since = self._moved, time.monotonic()
                continue
            limit = stalled_disk.patience(self._stall_seconds)
            if time.monotonic() - since > limit or not self._thread.is_alive():
                self._give_up(seen)
                return False
        return True

    def close(self) -> bool:
        """Drain and end the thread; a later ``submit`` starts a new one.

        A thread that is stuck stays the only one: another would take the jobs that have to wait for the one it is at.
        """
        drained = self.drain()
        if self._thread is not None and drained:
            self._jobs.put(None)
            self._thread.join()
        if drained or (self._thread is not None and not self._thread.is_alive()):
            self._thread = None
        return drained

    def _run(self) -> None:
        while True:
            job: Any = self._jobs.get() if self._watch is None else self._job_or_look(self._watch)
            if job is None:
                return
            failure = guard.attempt(job)
            if failure is not None and self._on_failure is not None:
                guard.attempt(lambda error=failure: self._on_failure(error))  # type: ignore[misc]
            self._moved += 1

    def _job_or_look(self, watch: _Watch) -> Job | None:
        """The next job; as long as there is none, what is to be looked at is."""
        while True:
            left = watch.due - time.monotonic()
            if left <= 0:
                guard.attempt(watch.look)
                watch.due, left = time.monotonic() + watch.seconds, watch.seconds
            with suppress(Empty):
                return self._jobs.get(timeout=left)


def by_numpy(to: Bytes, source: Bytes) -> None:
    """Copy all of ``source`` to ``to``; both are contiguous and of one size."""
    to[:] = source


def compiled(library: Path) -> Copy:
    """The same, past the caches, which takes two thirds of the time where the values are larger than they are.

    Raises:
        OSError: there is no such function, or it is not one for this machine or release.
    """
    loaded = ctypes.CDLL(str(library))
    if not hasattr(loaded, "smd_agent_copy_interface") or loaded.smd_agent_copy_interface() != _INTERFACE:
        raise OSError(f"{library} is not of this release")
    function = loaded.smd_agent_copy
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    function.restype = None

    def copy(to: Bytes, source: Bytes) -> None:
        function(to.__array_interface__["data"][0], source.__array_interface__["data"][0], source.nbytes)

    return copy


def fastest_copy() -> Copy:
    """The fastest copy that works here."""
    try:
        return compiled(LIBRARY)
    except OSError:
        return by_numpy


copy_large: Copy = fastest_copy()
