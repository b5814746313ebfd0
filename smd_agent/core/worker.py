"""The worker of a run that a process is, and whether it may write."""

from __future__ import annotations

from smd_agent import guard
from smd_agent.core.sink import RunSink


class Worker:
    """This process among the workers of a run.

    Args:
        sink: where the run is written.
        include: ``"one"`` lets only worker 0 write, ``"all"`` every worker.

    Attributes:
        rank: its number; 0 until it is known.
        size: how many workers there are; 1 until it is known.
        writes: whether it writes; None until it has been placed.
        apart: whether it has a run of its own.
    """

    def __init__(self, sink: RunSink, include: str) -> None:
        self._sink = sink
        self._include = include
        self.rank = 0
        self.size = 1
        self.writes: bool | None = None
        self.apart = False

    def place(self, rank: int, size: int) -> bool:
        """Take this number, and make ready to write if that is one that writes."""
        self.rank, self.size = rank, size
        self.writes = (rank == 0 or self._include == "all") and self._claim()
        return self.writes

    def leave_place(self, rank: int) -> None:
        """Write nothing more until placed again: the workers have met, and this one's number is ``rank``."""
        if self._sink.started:
            self._sink.leave()
            if rank != self.rank or self._sink.relocated_because is not None:
                line = f"what rank {rank} has saved before is {worker_name(self.rank)} in {self._sink.location}"
                guard.say(f"the ranks have met only now: {line}")
        self.writes = None

    def begin_anew(self) -> None:
        """Be placed again, in a process that a fork has made."""
        self.writes = None

    def _claim(self) -> bool:
        name = worker_name(self.rank)
        refused = self._sink.start(name, alone=self.size == 1 or self.apart)
        if refused is not None:
            guard.say(f"nothing is saved from {name}: {self._sink.location} is not free for it ({refused})")
        return refused is None


def worker_name(rank: int) -> str:
    """What a worker of this number is called in file names."""
    return f"worker_{rank}"
