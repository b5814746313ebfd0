"""The step that is open: what is saved of it, what captures it, and its way to the disk; base of the recorder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from smd_agent.core.clock import ModeClock, RunPosition
from smd_agent.core.failure_domains import STEPS, failures
from smd_agent.core.locking import locked
from smd_agent.core.modes import ModeKeys
from smd_agent.core.overhead import overhead
from smd_agent.core.ports import HeldStep, LateValues, OpenCapture, StepSink, StepState
from smd_agent.core.save_plan import Group, SavePlan

if TYPE_CHECKING:
    from smd_agent.core.run_output import RunOutput
    from smd_agent.core.selection import Selection


class OpenStep:
    """The current step of a run.

    Args:
        selection: what is saved.
        output: where it goes.
        position: makes what counts the steps.

    Attributes:
        selection: the same.
        position: where the run stands; the framework's hook advances it.
        clocks: of the modes.
        ends_with_updates: whether training steps end with updates, unless the user has set another mode.
        capture: what captures the open step, closed when the step ends; None if nothing needs that.
        left_out: tells whether what this thread computes is none of the open step's.
        late: takes values that come later, such as those on an accelerator; None if all are there at once.
        output: the same.
    """

    def __init__(
        self, selection: Selection, output: RunOutput, position: Callable[[ModeClock], RunPosition] = RunPosition
    ) -> None:
        self.clocks = {mode: ModeClock(mode) for mode in ModeKeys}
        self.selection = selection
        self.position = position(self.clocks[ModeKeys.GLOBAL])
        self.ends_with_updates = False
        self._now = StepState()
        self.output = output
        self.capture: OpenCapture | None = None
        # bool, called without arguments, says False.
        self.left_out: Callable[[], bool] = bool
        self.late: LateValues | None = None
        # Taken out of the way, and given neither to ``commit`` nor back.
        self._held: HeldStep | None = None
        # Whether the program waits until the next step that is handed to the disk is there.
        self._awaited = False
        self._ended_step = -1

    @property
    def lock(self) -> threading.RLock:
        """Held by the thread that changes the selection or the step: two trainings may run, and users' threads save."""
        return self.selection.lock

    def wants(self, name: str) -> bool:
        """True if the current step saves a tensor of this name."""
        return self.position.saving and self._current_plan().includes(name, self._now.due)

    def ever_saves(self, collection: str) -> bool:
        """True if a collection is saved at some step."""
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
        return self._current_plan().names_of(self._now.due) if self.position.saving else set()

    def shares_due(self) -> bool:
        """True if the current step saves shares of the channels of some tensors."""
        return self.position.saving and self._current_plan().shares_due(self._now.due)

    def group(self, names: tuple[str, ...]) -> Group:
        """The plan of what the current step saves of tensors that come together."""
        return self._current_plan().group(names, self._now.due)

    def takes(self, name: str) -> bool:
        """True if the current step saves a tensor of this name, whose collections may be new."""
        plan = self._current_plan()
        plan.forget(name)
        if not self.position.saving:
            return False
        self._now.due |= plan.due(self.position.clock.mode, self.position.clock.step)
        return plan.how(name, self._now.due) is not None

    def _current_plan(self) -> SavePlan:
        plan = self.selection.plan()
        if plan is not self._now.plan:
            with self.lock:
                self._now.plan = plan
                if self.position.saving:
                    # The open step goes by the new plan, whose collections may be numbered otherwise.
                    self._now.due = plan.due(self.position.clock.mode, self.position.clock.step)
        return plan

    @property
    def step_saved(self) -> int:
        """The last step of which something is saved, the current one among them; -1 if there is none."""
        return max(self._ended_step, self._now.number if self.unfinished else -1)

    @property
    def unfinished(self) -> bool:
        """True if a step has values, and is open or held."""
        return self.position.open or self._held is not None

    def ask_again(self) -> None:
        """Decide about the next step of every mode anew."""
        for clock in self.clocks.values():
            clock.due = 0

    @locked
    def end_step(self) -> None:
        """Remove what captured the current step, and hand what it has saved to the disk."""
        held = self.hold_step()
        if held is not None:
            self._end(held)

    @STEPS.fence("putting a step on its way to the disk", again=True)
    def _end(self, held: HeldStep) -> None:
        if self.late is None:
            self.commit(held)
        else:
            # What comes after it must not replace it, wherever it waits.
            self._note_end(held)
            self._held = None
            self.late.end(held)
            self._ask_again_for_late_values()

    @locked
    def hold_step(self) -> HeldStep | None:
        """Take what the current step has saved out of the way of the next one, which may turn out to be none.

        It has to be given to ``commit``, or back by ``resume_step``; None: nothing was saved.
        """
        self._end_capture()
        sink, self._now.sink = self._now.sink, None
        self._held = None if sink is None else HeldStep(sink, self._now.number, self._now.due, self.position.saving)
        self.position.saving = self.position.open = overhead.counts = False
        return self._held

    def resume_step(self, held: HeldStep) -> None:
        """Make a step that was held the current one again, after the next one was dropped."""
        self._now.sink, self._now.number, self._now.due = held.sink, held.step, held.due
        self.position.open, self.position.saving = True, held.saving
        self._held = None

    @locked
    def commit(self, held: HeldStep) -> None:
        """Hand a step that was held to the disk."""
        self._note_end(held)
        STEPS.run("writing the collections file", self.output.export_collections)
        self.output.sink.commit(held.sink, self._current_plan().steps_among)
        if held is self._held:
            self._held = None
        if self._awaited:
            self._reach_disk()

    @locked
    def reach_disk(self) -> None:
        """Have the program wait until all that was saved is on disk; for one that is open or held, when it ends."""
        self._awaited = self.unfinished
        if not (self._awaited or self.output.off) and self.output.sink.started:
            self._reach_disk()

    @locked
    def publish(self) -> None:
        """Have readers find what the current step has so far; it goes on, and may get more.

        What is captured until the step ends is not yet there.
        """
        sink = None if self.output.off else self._now.sink
        if self.late is not None:
            self.late.settle(wait=True)
            if sink is not None:
                self.late.bring(sink)
        if sink is not None:
            self.output.export_collections()
            self.output.sink.publish(sink)

    def publish_ended(self) -> None:
        """Have readers find all steps that have ended, the current one if only given values can still come to it."""
        self._publish_if_ended()
        if self.output.sink.started and not self.output.off:
            self.output.sink.flush()

    @locked
    def _publish_if_ended(self) -> None:
        position = self.position
        if position.inside or position.awaits_update:
            return
        if self.capture is not None:
            if not position.updated or self.left_out():
                return
            self._end_capture()
        self.publish()

    def give_up_step(self) -> None:
        """Capture no more of the current step, whose opening has failed; what it has goes to the disk when it ends."""
        capture, self.capture = self.capture, None
        self.position.saving = overhead.counts = False
        if capture is not None:
            STEPS.always("undoing what a step has installed", capture.drop)

    def sink_of_step(self, saves: Collection[str] = ()) -> StepSink | None:
        """Takes values of the current step, whatever that saves otherwise; None: this process writes nothing.

        Args:
            saves: collections that are saved in it, though it is not due, as far as the run saves them at some step.
        """
        if self.output.off:
            return None
        # Completes the collections, whose file is written when the output begins.
        due = self._current_plan().saved_of({*saves})
        if bool(saves) > bool(due) or not self.output.begin(self.position.clock.mode if saves else ModeKeys.GLOBAL):
            return None
        if due:
            self._now.due, self.position.saving = due, True
            failures.saved_steps += 1
        return self._open_sink()

    def _note_end(self, held: HeldStep) -> None:
        self._ended_step = max(held.step, self._ended_step)
        if held.step == self._now.resumed:
            self._now.resumed = -1

    def _reach_disk(self) -> None:
        self._awaited = False
        with overhead.spending():
            if self.late is not None:
                self.late.settle(wait=True)
            self.output.sink.flush(last_look=False)

    def _end_capture(self) -> None:
        capture, self.capture = self.capture, None
        if capture is not None:
            self._now.closing = True
            # What fails here is missing in the step; what it has goes to the disk, and the next one is opened.
            STEPS.always("closing a step", capture.close)
            self._now.closing = False

    def _ask_again_for_late_values(self) -> None:
        """Have the next step, saved or not, look for values that a step still waits for."""
        if self.late is not None and self.late.waiting:
            self.ask_again()

    def _open_sink(self) -> StepSink:
        if self._now.sink is None:
            position = self.position
            if position.step <= self._ended_step and position.step != self._now.resumed:
                # Its file is complete; what comes after it must not replace it.
                position.newest = max(position.newest, self._ended_step) + 1
                position.step = position.newest
                position.clock.step += 1
            self._now.number = max(position.step, 0)
            self._now.sink = self.output.sink.begin_step(
                self._now.number, position.clock.mode, max(position.clock.step, 0)
            )
            position.open = True
        return self._now.sink
