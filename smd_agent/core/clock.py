"""Counts steps, in a form that costs an unsaved step next to nothing."""

from __future__ import annotations

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

    step: number of the current step over all modes; -1 before the first.
    clock: counts the mode of the current step.
    train, evaluation: clocks of the steps that follow, when the model trains and when it does not.
    open: the current step has values that wait to be handed to the disk.
    saving: the current step is saved.
    inside: a model that opens steps is being called; calls within that call belong to the same step.
    """

    __slots__ = ("clock", "evaluation", "inside", "open", "saving", "step", "train")

    def __init__(self, clock: ModeClock) -> None:
        self.step = -1
        self.clock = self.train = self.evaluation = clock
        self.open = False
        self.saving = False
        self.inside = False

    def begin(self, clock: ModeClock, steps: int = 1) -> bool:
        """Make the next step the current one, counted by this clock; whether it is due.

        The models' own counters do the same in place, because they run in every step of the training.
        """
        self.step += steps
        self.clock = clock
        clock.step += steps
        return clock.step >= clock.due

    def take_back(self, steps: int = 1) -> None:
        """Undo ``begin``: there was no such step."""
        self.step -= steps
        self.clock.step -= steps
