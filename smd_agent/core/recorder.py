"""Recorder of a run: takes steps and their tensors from the framework's hook and hands what is wanted to the disk.

A framework's hook advances the ``RunPosition`` and compares the clock's step with its ``due``. Nothing else happens in
a step that is not saved. The hook calls ``open_step`` when a step is due, ``save_tensors`` as values come up, and
``end_step`` before the next step begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from smd_agent import guard
from smd_agent.core.clock import NEVER, ModeClock, RunPosition
from smd_agent.core.modes import ModeKeys
from smd_agent.core.plan import Group, SavePlan
from smd_agent.core.ports import Deferred, HeldStep, LateValues, OpenCapture
from smd_agent.core.sink import StepSink
from smd_agent.core.turns import in_turn
from smd_agent.core.values import Captured, write_group, write_raw

if TYPE_CHECKING:
    from smd_agent.core.run_output import RunOutput
    from smd_agent.core.selection import Selection

ToArray = Callable[[Any], "Captured | None"]


class Recorder:
    """Saves tensors of a run by step and mode.

    Args:
        selection: what is saved.
        output: where it goes.
        to_array: see ``BaseHook.to_array``.

    Attributes:
        position: where the run stands; the framework's hook advances it.
        clocks: of the modes.
        capture: what captures the open step, closed when the step ends; None if nothing needs that.
        left_out: tells whether what this thread computes is none of the open step's.
        late: takes values that come later, such as those on an accelerator; None if all are there at once.
    """

    def __init__(self, selection: Selection, output: RunOutput, to_array: ToArray) -> None:
        self.clocks = {mode: ModeClock(mode) for mode in ModeKeys}
        self.position = RunPosition(self.clocks[ModeKeys.GLOBAL])
        self.capture: OpenCapture | None = None
        self.left_out: Callable[[], bool] = bool
        self.late: LateValues | None = None
        self.selection = selection
        self.output = output
        # Two trainings may run in one process, and users' threads save too.
        self.turn = selection.turn
        selection.on_change = self.ask_again
        self._to_array = to_array
        self._due = 0
        self._plan: SavePlan | None = None
        self._step_sink: StepSink | None = None
        self._early_scalars: list[tuple[str, npt.NDArray[Any], float | None]] = []
        self._ended_step = self._open_step = -1

    @property
    def mode(self) -> ModeKeys:
        """The mode of the current step."""
        return self.position.clock.mode

    # Steps.

    def use_clock(self, clock: ModeClock) -> None:
        """Count the steps that follow by this clock."""
        if clock.mode is ModeKeys.GLOBAL:
            clock.step = self.position.step
        clock.due = 0
        self.position.train = self.position.evaluation = clock

    def clock_for(self, mode: ModeKeys) -> ModeClock:
        """What counts the steps that are of this mode by themselves: its clock, unless the user has set a mode."""
        position = self.position
        return position.train if position.train is position.evaluation else self.clocks[mode]

    def follow_calls(self) -> None:
        """Take the mode from what the program does until ``use_clock`` is called."""
        self.position.train = self.clocks[ModeKeys.TRAIN]
        self.position.evaluation = self.clocks[ModeKeys.EVAL]

    def ask_again(self) -> None:
        """Decide about the next step of every mode anew."""
        for clock in self.clocks.values():
            clock.due = 0

    @in_turn
    def open_step(self) -> bool:
        """Decide about the step that has just begun, and open it if something is saved."""
        clock = self.position.clock
        if self.late is not None:
            self.late.settle()
        if self.output.off:
            clock.due = NEVER
            return False
        plan = self._current_plan()
        self._due = plan.due(clock.mode, clock.step)
        clock.due = plan.next_due(clock.mode, clock.step + 1)
        self.position.saving = bool(self._due) and self.output.begin()
        if self.position.saving:
            self._step_file()
        self._ask_again_for_late_values()
        return self.position.saving

    @in_turn
    def drop_step(self, steps: int = 1) -> None:
        """Undo the beginning of the current step, which turned out to be none; what it has saved is forgotten."""
        self.position.saving = self.position.open = False
        self._step_sink = None
        self.position.take_back(steps)
        self.position.clock.due = 0

    @in_turn
    def end_step(self) -> None:
        """Remove what captured the current step, and hand what it has saved to the disk."""
        held = self.hold_step()
        if held is None:
            return
        if self.late is None:
            self.commit(held)
        else:
            # What comes after it must not replace it, wherever it waits.
            self._ended_step = held.step
            self.late.end(held)
            self._ask_again_for_late_values()

    @in_turn
    def hold_step(self) -> HeldStep | None:
        """Take what the current step has saved out of the way of the next one, which may turn out to be none.

        It has to be given to ``commit``, or back by ``resume_step``; None: nothing was saved.
        """
        capture, self.capture = self.capture, None
        if capture is not None:
            capture.close()
        saving = self.position.saving
        self.position.saving = self.position.open = False
        sink, self._step_sink = self._step_sink, None
        return None if sink is None else HeldStep(sink, self._open_step, self._due, saving)

    def resume_step(self, held: HeldStep) -> None:
        """Make a step that was held the current one again, after the next one was dropped."""
        self._step_sink, self._open_step, self._due = held.sink, held.step, held.due
        self.position.open, self.position.saving = True, held.saving

    @in_turn
    def commit(self, held: HeldStep) -> None:
        """Hand a step that was held to the disk."""
        self._ended_step = max(held.step, self._ended_step)
        self.output.export_collections()
        self.output.sink.commit(held.sink)

    def flush(self) -> None:
        """Hand the current step to the disk and wait until it is there; the run goes on."""
        self._end_steps()
        if self.output.sink.started and not self.output.off:
            self.output.sink.flush()

    @in_turn
    def finish(self, end_marker: bool) -> None:
        """Put everything on disk and, if asked to, mark the run as ended. Repeating it is harmless."""
        if self._early_scalars and not self.output.off:
            self._current_plan()
            if self.output.begin():
                self._step_file()
        self._end_steps()
        self.output.finish(end_marker)

    def disable(self) -> None:
        """Save nothing more. What has been handed to the disk stays; the current step is dropped."""
        self.output.off = True
        # A thread that a fork has left behind may hold the old one for ever.
        self.turn = self.selection.turn = threading.RLock()
        self.position.saving = self.position.open = False
        self._step_sink = None
        capture, self.capture = self.capture, None
        if capture is not None:
            capture.drop()
        if self.late is not None:
            self.late.drop()

    # Tensors.

    def wants(self, name: str) -> bool:
        """Whether the current step saves a tensor of this name."""
        return self.position.saving and self._current_plan().includes(name, self._due)

    def ever_saves(self, collection: str) -> bool:
        """Whether a collection is saved at some step."""
        return collection in self.selection.names

    def ever_wanted(self, names: frozenset[str]) -> frozenset[str]:
        """Those of several names that are in a collection that is saved, at whatever step."""
        return self._current_plan().included(names)

    def next_step_wants(self, clock: ModeClock) -> Callable[[str], bool]:
        """Tells of a tensor's name whether the clock's next step saves it; nothing is begun."""
        plan = self._current_plan()
        due = plan.due(clock.mode, clock.step + 1)
        return lambda name: plan.includes(name, due)

    def collections_due(self) -> set[str]:
        """Names of the collections that the current step saves."""
        return self._current_plan().names_of(self._due) if self.position.saving else set()

    def group(self, names: tuple[str, ...]) -> Group:
        """What the current step saves of tensors that come together."""
        return self._current_plan().group(names, self._due)

    @in_turn
    def save_tensors(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Save what the current step wants of these tensors; values that are not wanted are not touched."""
        if not self.position.saving or self.left_out():
            return
        if self.late is not None:
            names, values = self.late.ask(names, values)
        names = tuple(names)
        group = self.group(names)
        if not group.wanted:
            return
        sink = self._step_file()
        captured = {i: self._capture(names[i], values[i]) for i in group.wanted}
        write_group(sink, names, captured, group)

    def save_tensor_now(self, name: str, value: Any) -> None:
        """Save one tensor, if the current step wants it."""
        self.save_tensors((name,), (value,))

    @in_turn
    def save_given(self, name: str, value: Any) -> None:
        """Save a tensor that the user has handed over as it is, if the step saves one of its collections."""
        plan = self._current_plan()
        plan.forget(name)
        if not self.position.saving:
            return
        self._due |= plan.due(self.position.clock.mode, self.position.clock.step)
        how = plan.how(name, self._due)
        found = None if how is None else self._capture(name, value)
        if found is not None:
            write_raw(self._step_file(), name, found)

    @in_turn
    def save_number(self, name: str, array: npt.NDArray[Any], timestamp: float | None) -> None:
        """Save an array of shape (1,) in the current step, whatever that saves otherwise; before the first: in that.

        ``timestamp`` is in seconds since the epoch; the step's, if None.
        """
        if self.position.step < 0:
            self._early_scalars.append((name, array, timestamp))
        elif not self.output.off:
            self._current_plan()
            if self.output.begin():
                self._step_file().add(name, array, wall_time=timestamp)

    @in_turn
    def place(self, collection: str, tensor_name: str) -> None:
        """Make a tensor a member of a collection, whatever the collection's regexes say."""
        self.selection.place(collection, tensor_name)

    def cannot_save(self, collection: str, reason: str) -> None:
        """Say once why a collection, which the user asked for, stays without a tensor."""
        self.selection.explained.add(collection)
        guard.say_once((self, collection), f"{collection} cannot be saved: {reason}")

    # How it is done.

    @in_turn
    def _end_steps(self) -> None:
        self.end_step()
        if self.late is not None:
            self.late.settle(wait=True)

    def _ask_again_for_late_values(self) -> None:
        """Have the next step, saved or not, look for values that a step still waits for."""
        if self.late is not None and self.late.waiting:
            self.ask_again()

    def _current_plan(self) -> SavePlan:
        plan = self.selection.plan()
        return plan if plan is self._plan else self._take_plan(plan)

    @in_turn
    def _take_plan(self, plan: SavePlan) -> SavePlan:
        self._plan = plan
        if self.position.saving:
            # The open step goes by the new plan, whose collections may be numbered otherwise.
            self._due = plan.due(self.position.clock.mode, self.position.clock.step)
        return plan

    def _step_file(self) -> StepSink:
        if self._step_sink is None:
            position = self.position
            if position.step <= self._ended_step:
                # Its file is complete; what comes after it must not replace it.
                position.step = self._ended_step + 1
                position.clock.step += 1
            self._open_step = max(position.step, 0)
            self._step_sink = self.output.sink.begin_step(
                self._open_step, position.clock.mode, max(position.clock.step, 0)
            )
            position.open = True
            early, self._early_scalars = self._early_scalars, []
            for name, array, timestamp in early:
                self._step_sink.add(name, array, wall_time=timestamp)
        return self._step_sink

    def _capture(self, name: str, value: Any) -> Captured | None:
        captured = self._to_array(value.read() if isinstance(value, Deferred) else value)
        if captured is None:
            guard.say_once(("no array", name), f"{name} cannot be saved: a {type(value).__name__} is no array")
            return None
        return captured if captured[0].size else None
