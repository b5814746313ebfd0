"""The run on its way to storage: the worker that this process is, the collections file, the end of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from smd_agent import guard
from smd_agent.core.failure_domains import ENVIRONMENT, failures
from smd_agent.core.modes import ModeKeys
from smd_agent.core.overhead import overhead
from smd_agent.core.ports import Place, RunSink
from smd_agent.errors import SMDebugValueError
from smd_agent.process_age import process_age

if TYPE_CHECKING:
    from smd_agent.core.requests import Requests
    from smd_agent.core.selection import Selection


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
    """The name of a worker of this number in file names."""
    return f"worker_{rank}"


class RunOutput:
    """One worker's part of a run.

    Args:
        sink: where the values go.
        selection: what is saved.
        include_workers: ``"one"`` lets only worker 0 write, ``"all"`` every worker.
        rank_and_size: gives this process's rank and the number of workers, asked when the first step is saved.
        environment: gives facts as text, by group and name, of where it runs; asked then, too.

    Attributes:
        sink: the same.
        off: nothing more is saved.
    """

    def __init__(
        self,
        sink: RunSink,
        selection: Selection,
        include_workers: str,
        rank_and_size: Callable[[], tuple[int, int]],
        environment: Callable[[], Mapping[str, Mapping[str, str]]],
    ) -> None:
        if include_workers not in ("one", "all"):
            raise SMDebugValueError(f"include_workers is {include_workers!r}, allowed are 'one' and 'all'")
        self.sink = sink
        self.include_workers = include_workers
        self.off = False
        self._selection = selection
        self._rank_and_size = rank_and_size
        self._ask_environment = environment
        self._environment: Mapping[str, Mapping[str, str]] = {}
        self._worker = Worker(sink, include_workers)
        self._names_exported = -1
        self._told = ""
        self._forked = False
        # Of what failed before, a run says only what is not saved in it either.
        self._failures_before = 0 if not failures.saved_steps else len(failures.noted)

    @property
    def ended_worker(self) -> str:
        """The worker whose steps have been summed up; empty if none has, or in a process that a fork has made."""
        return self.sink.worker if self._told and not self._forked else ""

    @property
    def writes(self) -> bool | None:
        """True if this process writes; None as long as it has not been asked to."""
        return self._worker.writes

    @property
    def is_shared(self) -> bool:
        """True if several workers write the run."""
        return self._worker.size > 1 and self.include_workers == "all" and not self._worker.apart

    def begin_anew(self) -> None:
        """Write a run of its own, in a process that a fork has made, once that trains."""
        self._forked = True
        self._worker.begin_anew()
        self.sink.begin_anew()
        self._names_exported = -1
        self._told = ""

    def keep_apart(self, apart: bool) -> None:
        """True if this worker's run is its own whatever other workers there are, in a folder that none of them has."""
        self._worker.apart = apart

    def begin(self, mode: ModeKeys = ModeKeys.GLOBAL) -> bool:
        """Begin to write the run, if that has not happened; whether this process saves steps.

        ``mode`` is that of the step to be saved. Copies of a training process that only evaluate have no run.
        """
        writes = self._worker.writes
        if writes is None and self._forked and mode in (ModeKeys.EVAL, ModeKeys.PREDICT):
            return False
        if writes is None:
            writes = self._worker.place(*self._rank_and_size())
            if writes:
                self._start()
        return writes and not self.sink.dry_run

    def listen(self, requests: Requests) -> None:
        """Have requests to the running training looked for, once this worker is known; it may be called again."""
        worker = self._worker
        if worker.writes is not None:
            size = 1 if worker.apart else worker.size
            self.sink.listen(requests, Place(worker.rank, size, size if self.include_workers == "all" else 1))

    def meet_workers(self) -> None:
        """Go on under another number if there is one now: a process group may begin after the first steps."""
        worker = self._worker
        if worker.writes is not None and worker.size == 1 and not worker.apart:
            place = self._rank_and_size()
            if place != (worker.rank, worker.size):
                worker.leave_place(place[0])

    def export_collections(self, anew: bool = False) -> None:
        """Store the collections file, if it has changed or ``anew``."""
        seen = self._selection.tensors_known
        if anew or seen != self._names_exported:
            self._names_exported = seen
            self.sink.write_collections(self._selection.manager.to_json())

    def note_failures(self) -> None:
        """Note in the run what has failed of the agent's since it began, and what is off."""
        if self.sink.started:
            before = [failure for failure in failures.noted[: self._failures_before] if failure.off]
            self.sink.write_failures([*before, *failures.noted[self._failures_before :]])

    def finish(self, end_marker: bool) -> None:
        """Put everything on disk, mark the run as ended if asked to, and say what was saved.

        So does a run of which a failure has ended the capture: it was not cut off.
        """
        if not self.sink.started:
            self.sink.listen(None, Place(self._worker.rank, 1, 1))
            return
        with overhead.spending():
            self.export_collections(anew=True)
            # Before what it took is told: the wait for the disk is the agent's time, too.
            self.sink.flush()
        took = overhead.took(process_age)
        with overhead.spending():
            self.sink.write_about(self._environment, took)
            self.sink.close(end_marker and (self._worker.rank == 0 or self._worker.apart))
        summary = self.sink.summary()
        if summary == self._told:
            return
        self._told = summary
        for reason, missing in ({} if self.sink.dry_run else self._selection.never_found()).items():
            why = f": {reason}" if reason else ""
            guard.say(f"no tensor of {', '.join(missing)} came up in a step that was saved{why}")
        guard.say(self.sink.summary("" if took is None else f", {took[0] / took[1]:.1%} of the process's time"))

    def _start(self) -> None:
        workers = self._worker.size if self.include_workers == "all" and not self._worker.apart else 1
        self._selection.manager.set_num_workers(workers)
        included = self._selection.included
        self._selection.manager.set_asked_for(included.asked_for, included.always)
        self._environment = ENVIRONMENT.run("looking at the environment", self._ask_environment) or {}
        ENVIRONMENT.run("noting the environment", lambda: self.sink.write_about(self._environment, None))
        self.note_failures()
        self.export_collections(anew=True)
        why = f" ({self.sink.relocated_because})" if self.sink.relocated_because else ""
        where = f"{self.sink.location}{why}"
        guard.say_once((self, "saving", where), f"saving {self._selection.describe()} to {where}")
