"""Which worker of a run a process is, and whether it may write."""

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
    """

    def __init__(self, sink: RunSink, include: str) -> None:
        self._sink = sink
        self._include = include
        self.rank = 0
        self.size = 1
        self.writes: bool | None = None

    def place(self, rank: int, size: int) -> bool:
        """Take this number, and make ready to write if that is one that writes."""
        self.rank, self.size = rank, size
        self.writes = (rank == 0 or self._include == "all") and self._claim()
        return self.writes

    def leave_place(self, rank: int) -> None:
        """Write nothing more until placed again: the workers have met, and this one's number is ``rank``."""
        if self._sink.started:
            self._sink.leave()
            if rank != self.rank:
                line = f"the ranks have met only now: what rank {rank} has saved before is stored as worker_{self.rank}"
                guard.say(line)
        self.writes = None

    def _claim(self) -> bool:
        alone = self.size == 1
        earlier = alone and self._sink.holds_steps()
        owner = self._sink.start(f"worker_{self.rank}", alone=alone)
        if owner is not None:
            guard.say(f"{owner} is saving to {self._sink.location}: nothing is saved from this process")
            return False
        if earlier:
            line = "holds steps of an unfinished run: those with the same number are replaced"
            guard.say(f"{self._sink.location} {line}")
        return True
