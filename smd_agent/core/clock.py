"""Counters of steps, in a form that costs an unsaved step next to nothing."""

from __future__ import annotations

from collections.abc import Callable

from smd_agent.core.modes import ModeKeys

NEVER = 2**63


class ModeClock:
    """One mode's step counter.

    step: the mode's current step; -1 before its first.
    due: the next step that is saved; 0 until it has been worked out.
    """

    __slots__ = ("due", "mode", "step")

    def __init__(self, mode: ModeKeys) -> None:
        self.mode = mode
        self.step = -1
        self.due = 0


class RunPosition:
    """Position of a run. A plain slotted object, because it is touched in every step of the training.

    step: number of the current step over all modes; before the first, that of the one it follows.
    before: number of the step that the first one follows; -1 unless the run goes on with an earlier one.
    newest: the highest number given; another one than ``step`` where a training step goes on after an evaluation.
    clock: counts the mode of the current step.
    train, evaluation: clocks of the steps that follow, when the model trains and when it does not.
    open: the current step has values that wait to be handed to the disk.
    saving: the current step is saved.
    inside: a model that opens steps is being called; calls within that call belong to the same step.
    ends_with_update: training steps end with an update of the parameters, not with the next call of the model.
    awaits_update: a training step has begun, and the update that ends it has not come.
    updated: what ends the current step has come: the next call of a model, pass or run begins another one.
    unsure: no update has been seen yet, so that calls are looked at for signs of one.
    """

    __slots__ = (
        "awaits_update",
        "clock",
        "ends_with_update",
        "evaluation",
        "inside",
        "newest",
        "open",
        "saving",
        "step",
        "train",
        "unsure",
        "updated",
    )

    before: int = -1

    def __init__(self, clock: ModeClock) -> None:
        self.step = self.newest = -1
        self.clock = self.train = self.evaluation = clock
        self.open = False
        self.saving = False
        self.inside = False
        self.ends_with_update = False
        self.awaits_update = False
        self.updated = False
        self.unsure = False

    def begin(self, clock: ModeClock, steps: int = 1) -> bool:
        """Make the next step the current one, counted by this clock; whether it is due.

        The models' own counters do the same in place, because they run in every step of the training.
        """
        self.newest += steps
        self.step = self.newest
        self.clock = clock
        self.updated = False
        clock.step += steps
        return clock.step >= clock.due

    def take_back(self, steps: int = 1) -> None:
        """Undo ``begin``: there was no such step."""
        self.newest -= steps
        self.step = self.newest
        self.clock.step -= steps

    def go_on_after(self, step: int) -> None:
        """Let the first step be the one after this one."""
        self.step = self.newest = step
        # Whatever a model has been called for, its next call begins a step.
        self.updated = True


class WatchedPosition(RunPosition):
    """The position of a run that may go on with an earlier one: somebody is told before each step begins.

    Attributes:
        before_step: called then, while the numbers are still those of the last step.
    """

    __slots__ = ("_newest", "before", "before_step")

    before: int
    before_step: Callable[[], object]

    def __init__(self, clock: ModeClock) -> None:
        # bool, called without arguments, does nothing.
        self.before_step = bool
        self._newest = self.before = -1
        super().__init__(clock)

    def go_on_after(self, step: int) -> None:
        """Let the first step be the one after this one."""
        super().go_on_after(step)
        self.before = step

    @property
    def newest(self) -> int:
        """The highest number given."""
        return self._newest

    @newest.setter
    def newest(self, number: int) -> None:
        if number > self._newest:
            self.before_step()
        self._newest = number
