"""How a hook's steps get from the framework to the disk: decided by the plan, captured, handed over.

A framework's hook advances the ``Pulse`` and compares the clock's step with its ``due`` (nothing else happens in a step
that is not saved), calls ``open_step`` when it is due, ``save_tensors`` as values come up, and ``end_step`` before the
next step begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent import guard
from smd_agent.core.clock import NEVER, ModeClock, Pulse
from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.core.names import flattened
from smd_agent.core.plan import SavePlan
from smd_agent.core.reduction_config import ReductionConfig
from smd_agent.core.save_config import SaveConfig, SaveConfigMode
from smd_agent.core.sink import HeldStep, RunSink, StepSink
from smd_agent.core.turns import in_turn
from smd_agent.core.values import Captured, write_group
from smd_agent.core.worker import Worker
from smd_agent.errors import InvalidCollectionConfiguration, SMDebugValueError


class Recorder:
    """Saves tensors of a run by step and mode.

    Args:
        sink: where the values go.
        manager: the framework's collections.
        default_collections: collections that are saved whatever is asked for.
        reduction_config: reductions for collections that have none of their own; None saves the tensors themselves.
        save_config: when collections without their own rule are saved.
        include_regex: tensors to save beside those of the collections.
        include_collections: names of the collections to save; nested lists are flattened.
        save_all: save every tensor.
        include_workers: ``"one"`` lets only worker 0 write, ``"all"`` every worker.

    Attributes:
        collection_manager: all collections of the run.
        pulse: where the run stands; the framework's hook advances it.
    """

    def __init__(
        self,
        sink: RunSink,
        manager: CollectionManager,
        default_collections: Iterable[str],
        *,
        reduction_config: ReductionConfig | None = None,
        save_config: SaveConfig | SaveConfigMode | Mapping[Any, Any] | None = None,
        include_regex: str | Sequence[str] | None = None,
        include_collections: Iterable[Any] | None = None,
        save_all: bool = False,
        include_workers: str = "one",
    ) -> None:
        if include_workers not in ("one", "all"):
            raise SMDebugValueError(f"include_workers is {include_workers!r}, allowed are 'one' and 'all'")
        self.collection_manager = manager
        self.save_config = SaveConfig.parse(save_config)
        self.reduction_config = reduction_config
        self.include_workers = include_workers
        manager.default_save_config = self.save_config
        default_collections, asked_for = tuple(default_collections), tuple(flattened(include_collections or ()))
        self._included = dict.fromkeys((*default_collections, *asked_for))
        if include_regex:
            manager.get(CollectionKeys.DEFAULT).include(
                include_regex if isinstance(include_regex, str) else list(include_regex)
            )
            self._included[CollectionKeys.DEFAULT] = None
        if save_all:
            manager.get(CollectionKeys.ALL).include(".*")
            self._included[CollectionKeys.ALL] = None
        self.clocks = {mode: ModeClock(mode) for mode in ModeKeys}
        self.pulse = Pulse(self.clocks[ModeKeys.GLOBAL])
        self.turn = threading.RLock()
        self._sink = sink
        self._due = 0
        self._plan: SavePlan | None = None
        self._last_plan: SavePlan | None = None
        self._step_sink: StepSink | None = None
        self._early_scalars: list[tuple[str, npt.NDArray[Any], float | None]] = []
        self._names_exported = -1
        self._worker = Worker(sink, include_workers)
        self._off = False
        self._told = ""
        # Nobody asked for these; where there are none, that is how it should be.
        self._explained = set(default_collections) - {*asked_for, CollectionKeys.LOSSES}
        self._ended_step = self._open_step = -1

    @property
    def out_dir(self) -> str:
        """The run's folder."""
        return self._sink.location

    @property
    def step(self) -> int:
        """Number of the current step over all modes, -1 before the first."""
        return self.pulse.step

    @property
    def mode(self) -> ModeKeys:
        """The mode of the current step."""
        return self.pulse.clock.mode

    @property
    def mode_steps(self) -> dict[ModeKeys, int]:
        """The current step of every mode that has begun; GLOBAL counts the steps of all."""
        begun = {mode: clock.step for mode, clock in self.clocks.items() if clock.step >= 0}
        return {**begun, ModeKeys.GLOBAL: self.step}

    @property
    def include_collections(self) -> list[str]:
        """Names of the collections that are saved."""
        names = dict(self._included)
        if CollectionKeys.ALL in names:
            names.update(dict.fromkeys(self.collection_manager.get_collections()))
        return list(names)

    @property
    def writing(self) -> bool:
        """Whether this process has begun to write the run."""
        return self._sink.started

    @in_turn
    def finish(self, end_marker: bool) -> None:
        """Put everything on disk and, if asked to, mark the run as ended. Repeating it is harmless."""
        if self._early_scalars and not self._off:
            self._prepared()
            if self._begin_writing() and not self._sink.dry_run:
                self._step_file()
        self.end_step()
        if not self._sink.started or self._off:
            return
        self._names_exported = -1
        self._export_collections()
        self._sink.close(end_marker and self._worker.rank == 0)
        summary = self._sink.summary()
        if summary != self._told:
            self._told = summary
            self._tell_what_never_came()
            guard.say(summary)

    def _tell_what_never_came(self) -> None:
        # "default" and "all" hold what other collections leave over, which may well be nothing.
        catch_all = (CollectionKeys.ALL, CollectionKeys.DEFAULT)
        known = {*catch_all, *self._explained}
        missing = [name for name in self._prepared().never_found() if name not in known]
        if missing and not self._sink.dry_run:
            guard.say(f"no tensor of {', '.join(missing)} came up in a step that was saved")

    def disable(self) -> None:
        """Save nothing more. What has been handed to the disk stays; the current step is dropped."""
        self._off = True
        # A thread that a fork has left behind may hold the old one for ever.
        self.turn = threading.RLock()
        self.pulse.saving = self.pulse.open = False
        self._step_sink = None

    # What frameworks' hooks override.

    def to_array(self, value: Any) -> Captured | None:
        """The value as an array (not copied where that can be avoided) and, if it had to be widened, its dtype's name.

        None: there is no way to see it as an array.
        """
        try:
            array = np.asarray(value)
        except (TypeError, ValueError):
            return None
        return (array, None) if array.dtype.kind in "fiubcUV" else None

    def worker(self) -> tuple[int, int]:
        """This process's rank and the number of workers, as they are known when the first step is saved."""
        return 0, 1

    def use_clock(self, clock: ModeClock) -> None:
        """Count the steps that follow by this clock."""
        if clock.mode is ModeKeys.GLOBAL:
            clock.step = self.step
        clock.due = 0
        self.pulse.train = self.pulse.evaluation = clock

    # What frameworks' hooks call.

    def meet_workers(self) -> None:
        """Go on under another number if ``worker`` gives one now: its process group may begin after the first steps."""
        worker = self._worker
        if worker.writes is not None and worker.size == 1:
            place = self.worker()
            if place != (worker.rank, worker.size):
                worker.leave_place(place[0])

    @in_turn
    def replan(self) -> None:
        """Look up anew which tensors belong to which collection."""
        if self._plan is not None:
            self._plan, self._last_plan = None, self._plan
        for clock in self.clocks.values():
            clock.due = 0

    @in_turn
    def place(self, collection: str, tensor_name: str) -> None:
        """Make a tensor a member of a collection, whatever the collection's regexes say."""
        known = collection in self.collection_manager.get_collections()
        found = self.collection_manager.get(collection)
        if found.has_tensor_name(tensor_name):
            return
        found.add_tensor_name(tensor_name)
        if not known:
            self.replan()
        elif self._plan is not None:
            self._plan.forget(tensor_name)

    def include_collection(self, name: str) -> None:
        """Save a collection too."""
        if name not in self._included:
            self._included[name] = None
            self.replan()

    @in_turn
    def open_step(self) -> bool:
        """Decide about the step that has just begun, and open it if something is saved."""
        clock = self.pulse.clock
        if self._off:
            clock.due = NEVER
            return False
        plan = self._prepared()
        self._due = plan.due(clock.mode, clock.step)
        clock.due = plan.next_due(clock.mode, clock.step + 1)
        self.pulse.saving = bool(self._due) and self._begin_writing() and not self._sink.dry_run
        if self.pulse.saving:
            self._step_file()
        return self.pulse.saving

    @in_turn
    def drop_step(self) -> None:
        """Undo the beginning of the current step, which turned out to be none; what it has saved is forgotten."""
        self.pulse.saving = self.pulse.open = False
        self._step_sink = None
        self.pulse.step -= 1
        self.pulse.clock.step -= 1
        self.pulse.clock.due = 0

    def end_step(self) -> None:
        """Hand what the current step has saved to the disk."""
        held = self.hold_step()
        if held is not None:
            self.end_held_step(held)

    @in_turn
    def hold_step(self) -> HeldStep | None:
        """Take what the current step has saved out of the way of the next one, which may turn out to be none.

        It has to be given to ``end_held_step``, or back by ``resume_step``; None: nothing was saved.
        """
        saving = self.pulse.saving
        self.pulse.saving = self.pulse.open = False
        sink, self._step_sink = self._step_sink, None
        return None if sink is None else HeldStep(sink, self._open_step, self._due, saving)

    def resume_step(self, held: HeldStep) -> None:
        """Make a step that was held the current one again, after the next one was dropped."""
        self._step_sink, self._open_step, self._due = held.sink, held.step, held.due
        self.pulse.open, self.pulse.saving = True, held.saving

    @in_turn
    def end_held_step(self, held: HeldStep) -> None:
        """Hand what a step that was held has saved to the disk."""
        self._ended_step = held.step
        self._export_collections()
        self._sink.commit(held.sink)

    def flush(self) -> None:
        """Hand the current step to the disk and wait until it is there; the run goes on."""
        self.end_step()
        if self._sink.started and not self._off:
            self._sink.flush()

    def cannot_save(self, collection: str, reason: str) -> None:
        """Say once why a collection, which the user asked for, stays without a tensor."""
        self._explained.add(collection)
        guard.say_once((self, collection), f"{collection} cannot be saved: {reason}")

    def wants(self, name: str) -> bool:
        """Whether the current step saves a tensor of this name."""
        return self.pulse.saving and self._prepared().includes(name, self._due)

    def ever_wanted(self, names: frozenset[str]) -> frozenset[str]:
        """Those of several names that are in a collection that is saved, at whatever step."""
        return self._prepared().included(names)

    def next_step_wants(self, clock: ModeClock) -> Callable[[str], bool]:
        """Tells of a tensor's name whether the clock's next step saves it; nothing is begun."""
        plan = self._prepared()
        due = plan.due(clock.mode, clock.step + 1)
        return lambda name: plan.includes(name, due)

    def collections_due(self) -> set[str]:
        """Names of the collections that the current step saves."""
        return self._prepared().names_of(self._due) if self.pulse.saving else set()

    @in_turn
    def save_tensors(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Save what the current step wants of these tensors; values that are not wanted are not touched."""
        if not self.pulse.saving:
            return
        names = tuple(names)
        plan = self._prepared()
        group = plan.group(names, self._due)
        if not group.wanted:
            return
        sink = self._step_file()
        captured = {i: self._capture(names[i], values[i]) for i in group.wanted}
        write_group(sink, names, captured, group)

    def save_tensor_now(self, name: str, value: Any) -> None:
        """Save one tensor, if the current step wants it."""
        self.save_tensors((name,), (value,))

    # How it is done.

    def _prepared(self) -> SavePlan:
        return self._plan or self._make_plan()

    @in_turn
    def _make_plan(self) -> SavePlan:
        if self._plan is None:
            manager = self.collection_manager
            while True:
                try:
                    manager.prepare(self.save_config, self.reduction_config)
                    break
                except InvalidCollectionConfiguration as error:
                    # One misspelt name must not cost the other collections.
                    guard.say(f"collection {error.c_name} is left out: it has neither include_regex nor tensor_names")
                    manager.get_collections().pop(error.c_name)
                    self._included.pop(error.c_name, None)
            self._plan = SavePlan([manager.get(name) for name in self.include_collections], self._last_plan)
            if self.pulse.saving:
                # The open step goes by the new plan, whose collections may be numbered otherwise.
                self._due = self._plan.due(self.pulse.clock.mode, self.pulse.clock.step)
        return self._plan

    def _begin_writing(self) -> bool:
        writes = self._worker.writes
        if writes is None:
            writes = self._worker.place(*self.worker())
            if writes:
                self._start_run()
        return writes

    def _start_run(self) -> None:
        workers = self._worker.size if self.include_workers == "all" else 1
        self.collection_manager.set_num_workers(workers)
        self._names_exported = -1
        self._export_collections()
        guard.say_once((self, "saving"), f"saving {self._what_is_saved()} to {self.out_dir}")

    def _what_is_saved(self) -> str:
        collections = {name: self.collection_manager.get(name) for name in self.include_collections}
        if CollectionKeys.ALL in collections and ".*" in collections[CollectionKeys.ALL].include_regex:
            return "all tensors"
        return ", ".join(name for name, found in collections.items() if found.include_regex or found.tensor_names)

    def _export_collections(self) -> None:
        seen = self._plan.names_seen if self._plan is not None else 0
        if seen != self._names_exported:
            self._names_exported = seen
            self._sink.write_collections(self.collection_manager.to_json())

    def _step_file(self) -> StepSink:
        if self._step_sink is None:
            clock = self.pulse.clock
            if self.step <= self._ended_step:
                # Its file is complete; what comes after it must not replace it.
                self.pulse.step = self._ended_step + 1
                clock.step += 1
            self._open_step = max(self.step, 0)
            self._step_sink = self._sink.begin_step(self._open_step, clock.mode, max(clock.step, 0))
            self.pulse.open = True
            early, self._early_scalars = self._early_scalars, []
            for name, array, timestamp in early:
                self._step_sink.add(name, array, wall_time=timestamp)
        return self._step_sink

    def _capture(self, name: str, value: Any) -> Captured | None:
        captured = self.to_array(value)
        if captured is None:
            guard.say_once(("no array", name), f"{name} cannot be saved: a {type(value).__name__} is no array")
            return None
        return captured if captured[0].size else None
