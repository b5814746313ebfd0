"""Recorder of a run: takes steps and their tensors from the framework's hook and hands what is wanted to the disk.

A framework's hook advances the ``RunPosition`` and compares the clock's step with its ``due``. Nothing else happens in
a step that is not saved. The hook calls ``open_step`` when a step is due, ``save_tensors`` as values come up, and
``end_step`` before the next step begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from smd_agent import guard
from smd_agent.core.channel_axes import ChannelAxes
from smd_agent.core.clock import NEVER, ModeClock, RunPosition
from smd_agent.core.failure_domains import GIVEN, REQUESTS, STEPS, failures, tensor_failed
from smd_agent.core.locking import locked
from smd_agent.core.manual_values import ManualValues
from smd_agent.core.modes import ModeKeys
from smd_agent.core.open_step import OpenStep
from smd_agent.core.overhead import overhead
from smd_agent.core.ports import OpenCapture, StepAside
from smd_agent.core.requests import Requests
from smd_agent.core.series import Series
from smd_agent.core.value_writing import ToArray, capture, write_group

if TYPE_CHECKING:
    from smd_agent.core.ports import StepSink
    from smd_agent.core.run_output import RunOutput
    from smd_agent.core.save_plan import Group
    from smd_agent.core.selection import Selection


_OFF = "nothing is saved any more"


class Recorder(OpenStep):
    """Saves tensors of a run by step and mode.

    Args:
        selection: what is saved.
        output: where it goes.
        to_array: see ``BaseHook.to_array``.
        position: makes what counts the steps.

    Attributes:
        axes: of the channels of layers' outputs; who captures these says where they are.
        series: takes a few numbers of every step, saved or not.
        requests: what is asked for while the run goes on.
    """

    def __init__(
        self,
        selection: Selection,
        output: RunOutput,
        to_array: ToArray,
        position: Callable[[ModeClock], RunPosition] = RunPosition,
    ) -> None:
        super().__init__(selection, output, position)
        self.axes = ChannelAxes()
        self.series = Series(self.position, output)
        self.requests = Requests(self.position, self.clocks.values(), selection)
        selection.on_change = self.ask_again
        self._to_array = to_array
        self._given = ManualValues(self, to_array)
        self._aside: StepAside | None = None

    @property
    def mode(self) -> ModeKeys:
        """The mode of the current step."""
        return self.position.clock.mode

    # Steps.

    @locked
    def use_clock(self, clock: ModeClock) -> None:
        """Count the steps that follow by this clock."""
        if clock is not self.position.train or clock is not self.position.evaluation:
            self._leave_training_step()
        if clock.mode is ModeKeys.GLOBAL:
            clock.step = self.position.step
        clock.due = 0
        self.position.train = self.position.evaluation = clock
        self.position.ends_with_update = self.ends_with_updates and clock.mode in (ModeKeys.TRAIN, ModeKeys.GLOBAL)

    def clock_for(self, mode: ModeKeys) -> ModeClock:
        """The clock of the steps that are of this mode by themselves: that mode's, unless the user has set one."""
        position = self.position
        return position.train if position.train is position.evaluation else self.clocks[mode]

    def follow_calls(self) -> None:
        """Take the mode from what the program does until ``use_clock`` is called."""
        self.position.train = self.clocks[ModeKeys.TRAIN]
        self.position.evaluation = self.clocks[ModeKeys.EVAL]
        self.position.ends_with_update = self.ends_with_updates

    def go_on_after(self, step: int, mode_steps: Mapping[ModeKeys, int]) -> None:
        """Number the steps, of which none has begun, as a run that has made these: of all modes, and of each."""
        self.position.go_on_after(step)
        self.output.sink.series.after = step
        self._ended_step = step
        for mode, number in {**mode_steps, ModeKeys.GLOBAL: step}.items():
            self.clocks[mode].step = number

    @locked
    def open_step(self) -> bool:
        """Decide about the step that has just begun, and open it if something is saved."""
        overhead.asked()
        overhead.counts = False
        clock = self.position.clock
        if self.late is not None:
            STEPS.run("looking for late values", self.late.settle)
        if self.output.off:
            clock.due = NEVER
            self.requests.end(_OFF)
            return False
        if self._now.sink is not None and self._now.number < self.position.step:
            # It was not closed: what is saved now is none of its values.
            self.end_step()
        self.requests.step_begins(clock)
        plan = self._current_plan()
        self._now.due = plan.due(clock.mode, clock.step)
        clock.due = min(plan.next_due(clock.mode, clock.step + 1), self.requests.next_due(clock))
        if self.requests.unread:
            clock.due = 0
        self.position.saving = bool(self._now.due) and self.output.begin(clock.mode)
        self.output.listen(self.requests)
        if self.position.saving:
            self._open_sink()
        overhead.counts = self.position.saving
        failures.saved_steps += self.position.saving
        if guard.owed:
            guard.tell_owed()
        if self._given.waiting:
            GIVEN.run("saving values that wait", self._given.step_opened)
        self._ask_again_for_late_values()
        return self.position.saving

    @locked
    def drop_step(self, steps: int = 1) -> None:
        """Undo the beginning of the current step, which turned out to be none; what it has saved is forgotten."""
        self.position.saving = self.position.open = False
        self._now.sink = None
        self.position.take_back(steps)
        self.position.clock.due = 0
        self._given.step_dropped()

    @locked
    def put_aside(self) -> None:
        """Leave the current training step, which awaits its update, for an evaluation; ``go_on`` makes it current."""
        position, late = self.position, self.late
        self._aside = StepAside(
            position.step,
            position.clock,
            position.saving,
            self._now,
            self.capture,
            None if late is None else late.put_aside(),
        )
        position.saving = position.open = False
        self._now, self.capture = replace(self._now, sink=None), None

    @locked
    def go_on(self) -> OpenCapture | None:
        """End the evaluation that stands between, and make the training step current again; what captures that."""
        aside, self._aside = self._aside, None
        if aside is None:
            return None
        self.end_step()
        position = self.position
        position.step, position.clock, position.saving = aside.step, aside.clock, aside.saving
        overhead.counts = aside.saving
        position.updated = False
        position.open = aside.state.sink is not None
        self._now = aside.state
        self._now.resumed = aside.step
        self.capture = aside.capture
        if self.late is not None and aside.late is not None:
            self.late.go_on(aside.late)
        return aside.capture

    @property
    def interrupted(self) -> StepAside | None:
        """The training step that waits for an evaluation to end; None if none does."""
        return self._aside

    def _leave_training_step(self) -> None:
        """End the training step that awaits an update: the program has begun something else."""
        if self._aside is not None:
            self.go_on()
        if self.position.awaits_update:
            self.position.awaits_update = False
            self.position.updated = True

    def flush(self) -> None:
        """Hand the current step to the disk and wait until it is there; only given values can come to it afterwards."""
        self._publish_all()
        if self.output.sink.started and not self.output.off:
            self.output.sink.flush()

    @locked
    def finish(self, end_marker: bool) -> None:
        """Put everything on disk and, if asked to, mark the run as ended. Repeating it is harmless."""
        if not self.output.off:
            GIVEN.run("saving values that wait", self._given.finish)
        STEPS.run("closing the last step", self._end_steps)
        REQUESTS.run("answering what is left", self.requests.end)
        guard.tell_owed()
        self.output.finish(end_marker)

    def disable(self) -> None:
        """Save nothing more. What has been handed to the disk stays; the current step is dropped."""
        self.output.off = True
        REQUESTS.run("answering what is left", lambda: self.requests.end(_OFF))
        self._drop()

    def begin_anew(self) -> None:
        """Go on as a run of its own, in a process that a fork has made; the current step is dropped."""
        self._drop()
        if not self.output.off:
            self.output.begin_anew()
            self.ask_again()

    # Tensors.

    def save_tensors(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Save what the current step wants of these tensors; values that are not wanted are not touched."""
        if self.position.saving:
            # Not ``locked``, which costs a call more: this runs for each input and output.
            with self.selection.lock:
                self._save_tensors(names, values)

    def _save_tensors(self, names: Sequence[str], values: Sequence[Any]) -> None:
        # A step may be ended by another thread than the one whose step it is.
        if not self.position.saving or (not self._now.closing and self.left_out()):
            return
        if self.late is not None:
            names, values = self.late.ask(names, values)
        names = tuple(names)
        group = self._current_plan().group(names, self._now.due)
        if not group.wanted:
            return
        sink = self._open_sink()
        if guard.attempt(lambda: self._write(sink, names, values, group)) is not None:
            # Perhaps of one alone. What has been written of them is written again.
            sink.drop(group.tags(names))
            for i in group.wanted:
                self._write_alone(sink, names[i], values[i])

    def _write(self, sink: StepSink, names: tuple[str, ...], values: Sequence[Any], group: Group) -> None:
        found = ((i, capture(self._to_array, names[i], values[i])) for i in group.wanted)
        write_group(sink, names, {i: one for i, one in found if one is not None}, group, self.axes)

    def _write_alone(self, sink: StepSink, name: str, value: Any) -> None:
        group = self._current_plan().group((name,), self._now.due)
        failure = guard.attempt(lambda: self._write(sink, (name,), (value,), group))
        if failure is not None:
            sink.drop(group.tags((name,)))
            tensor_failed(name, failure)

    @locked
    def replace_tensors(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Save these tensors in place of those of the same names that the step has."""
        if not self.position.saving or self.left_out():
            return
        group = self.group(tuple(names))
        known = group.tags(names)
        if self.late is not None:
            self.late.forget(known)
        self._open_sink().drop(known)
        self.save_tensors(names, values)

    def save_tensor_now(self, name: str, value: Any) -> None:
        """Save one tensor, if the current step wants it."""
        self.save_tensors((name,), (value,))

    @locked
    def save_given(self, name: str, value: Any) -> None:
        """Save a tensor that the user has handed over as it is, if its step saves a collection of it."""
        if not self.output.off:
            self._given.save_tensor(name, value)

    @locked
    def save_number(self, name: str, array: npt.NDArray[Any], timestamp: float | None) -> None:
        """Save an array of shape (1,) in the step it was given in, whatever that saves otherwise.

        ``timestamp`` is in seconds since the epoch; the step's, if None.
        """
        if not self.output.off:
            self._given.save_number(name, array, timestamp)

    # What the given values ask for.

    @locked
    def place(self, collection: str, tensor_name: str) -> None:
        """Make a tensor a member of a collection, whatever the collection's regexes say."""
        self.selection.place(collection, tensor_name)

    def cannot_save(self, collections: Sequence[str], reason: str) -> None:
        """Say once, in one line, why collections, which the user asked for, stay without a tensor."""
        new = self.selection.explain(collections, reason)
        if new:
            guard.say(f"{', '.join(new)} cannot be saved: {reason}")

    def cannot_have(self, collections: Sequence[str], reason: str) -> None:
        """Note in the run why collections can have no tensor in this training, whether or not they are asked for."""
        self.selection.cannot_have(collections, reason)

    # How it is done.

    def _drop(self) -> None:
        # A thread that a fork has left behind may hold the old one for ever.
        self.selection.lock = threading.RLock()
        self.position.saving = self.position.open = self._awaited = False
        self._now.sink = self._held = None
        self._given.drop()
        self.requests.drop()
        aside, self._aside = self._aside, None
        capture, self.capture = self.capture, None
        for left in (capture, None if aside is None else aside.capture):
            if left is not None:
                left.drop()
        if self.late is not None:
            self.late.drop(None if aside is None else aside.late)

    @locked
    def _publish_all(self) -> None:
        if self._aside is not None:
            self._end_steps()
        self._end_capture()
        self.publish()

    @locked
    def _end_steps(self) -> None:
        self.end_step()
        if self._aside is not None:
            self.go_on()
            self.end_step()
        if self.late is not None:
            self.late.settle(wait=True)
