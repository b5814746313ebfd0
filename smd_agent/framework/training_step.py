"""Begin and end of the steps of a training loop that the program has written itself.

A training step reaches from its first forward to the update of the parameters; the next forward begins the next step.
Where several optimizers take turns, the step ends once each has updated (see ``optimizer_turns``). A call of a model in
evaluation mode, or without gradients, is a step of its own. If it comes before the update, the training step waits and
goes on after it. Where updates cannot be seen, as those that a program makes by hand, changed parameters or, without
any optimizer, a backward pass tell of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from smd_agent.core.clock import ModeClock, RunPosition
from smd_agent.core.recorder import Recorder
from smd_agent.framework.optimizer_turns import UpdateRounds
from smd_agent.interpreter.stack_room import has_room


class Signs(Protocol):
    """Tells of updates that no optimizer has told of."""

    def were_updated(self) -> bool:
        """True if parameters of models have changed since this was asked last, or the models were found."""


class TrainingSteps:
    """The steps of one hook.

    Args:
        recorder: of the hook.
        rounds: the optimizers of the process.
        signs: tells of updates that no optimizer has told of.

    Attributes:
        position: of the recorder.
        pass_ends_step: whether a backward pass stands for an update, because the program has no optimizer.
        on_end: called when a training step has ended, before the next one begins.
        on_going_on: called when the one that has ended last turns out to go on.
    """

    def __init__(self, recorder: Recorder, rounds: UpdateRounds, signs: Signs) -> None:
        self._recorder = recorder
        self.position: RunPosition = recorder.position
        self._rounds = rounds
        self._signs = signs
        self.pass_ends_step = False
        # bool, called without arguments, does nothing.
        self.on_end: Callable[[], object] = bool
        self.on_going_on: Callable[[], object] = bool
        # A step that is due and was left unopened, and whether the position was unsure then.
        self._unopened: tuple[int, bool] | None = None

    @property
    def end_with_updates(self) -> bool:
        """True if training steps end with updates, not with the next call of the model."""
        return self._recorder.ends_with_updates

    @end_with_updates.setter
    def end_with_updates(self, wanted: bool) -> None:
        self._recorder.ends_with_updates = self.position.ends_with_update = wanted

    # What a model's counter asks, while an update is awaited.

    def training_call(self) -> bool:
        """A model is called to be trained; whether that begins a step."""
        position = self.position
        if self._recorder.interrupted:
            self.go_on()
        if self._unopened is not None:
            position.unsure = self._unopened[1]
        if position.unsure and self._signs.were_updated():
            self.end()
            return True
        return position.clock is not position.train

    def leave_unopened(self) -> None:
        """The step that has begun is due, but nothing can be seen of the call that began it: the next one opens it."""
        position = self.position
        if position.awaits_update:
            self._unopened = position.step, position.unsure
            # The next call comes to be looked at.
            position.unsure = True

    def take_unopened(self) -> bool:
        """True if the current step was left unopened and can be opened; asked once, as it is opened then."""
        unopened, self._unopened = self._unopened, None
        if unopened is None or unopened[0] != self.position.step:
            return False
        if has_room():
            return True
        self.leave_unopened()
        return False

    def evaluation_call(self, again: bool) -> bool:
        """A model is called to be evaluated; whether that is a step of its own.

        Args:
            again: it has been called in the current step already.
        """
        position = self.position
        if position.train is position.evaluation:
            # The user has set the mode: what is called before the update is part of the step.
            return False
        if self._recorder.interrupted:
            return again
        self._recorder.put_aside()
        return True

    def goes_on(self) -> None:
        """The training step that has just ended goes on, with a model that is called for the first time."""
        position = self.position
        if position.updated and position.clock is position.train:
            position.updated = False
            position.awaits_update = position.ends_with_update
            self.on_going_on()

    # What optimizers and backward passes tell.

    def updated(self, optimizer: Any) -> None:
        """An optimizer has updated its parameters."""
        self.position.unsure = False
        self._unopened = None
        if self._recorder.interrupted:
            self.go_on()
        if self._rounds.updated(optimizer):
            self.end()

    def passed(self) -> None:
        """A backward pass is over."""
        if self.pass_ends_step and self.position.unsure:
            self.end()

    def go_on(self) -> None:
        """Make the training step that waits for an evaluation the current one."""
        self._recorder.go_on()

    def begin(self, clock: ModeClock) -> bool:
        """Begin a training step; whether it is due."""
        self.position.awaits_update = self.position.ends_with_update
        return self.position.begin(clock)

    def end(self) -> None:
        """End the training step that is open, so that the next call of a model begins another one."""
        position = self.position
        if self._recorder.interrupted:
            self.go_on()
        if position.awaits_update:
            position.awaits_update = False
            position.updated = True
            self.on_end()
