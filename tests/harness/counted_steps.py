"""Random calls of models, counted by their counters and, beside that, as every other step of a hook is."""

from __future__ import annotations

import random
from types import SimpleNamespace

from smd_agent.core.clock import ModeClock, RunPosition
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.hook import FrameworkHook


class Opener:
    """Notes what steps are opened and closed; which are due follows from the seed."""

    names_culprits = False
    first_call = SimpleNamespace(wanted=False)

    def __init__(self, seed):
        self.clocks = {mode: ModeClock(mode) for mode in ModeKeys}
        self.position = RunPosition(self.clocks[ModeKeys.GLOBAL])
        self.follow_calls()
        self.notes = []
        self._random = random.Random(seed)

    def follow_calls(self):
        self.position.train, self.position.evaluation = self.clocks[ModeKeys.TRAIN], self.clocks[ModeKeys.EVAL]

    def set_mode(self, mode):
        self.position.train = self.position.evaluation = self.clocks[mode]

    def start_step(self):
        self._note("start")
        self.position.open = self._random.random() < 0.7
        self.position.clock.due = self.position.clock.step + self._random.randint(1, 4)

    def finish_step(self):
        self._note("finish")
        self.position.open = False

    def state(self):
        position = self.position
        return (
            position.step,
            position.open,
            position.clock.mode,
            {mode: (c.step, c.due) for mode, c in self.clocks.items()},
        )

    def _note(self, what):
        self.notes.append((what, *self.state()))


def compare(seed, opener, calls, number_of_calls=200):
    """Make random calls and count them twice.

    Args:
        seed: of the calls.
        opener: made with this seed; what the counters open steps with.
        calls: one for each model, taking whether it trains.

    Returns:
        The notes of the opener and those of the other count.
    """
    choices = random.Random(seed + 1)
    other = Opener(seed)
    last = {}
    for _ in range(number_of_calls):
        if choices.random() < 0.1:
            mode = choices.choice([None, *ModeKeys])
            for each in (opener, other):
                each.follow_calls() if mode is None else each.set_mode(mode)
        place, training = choices.randrange(len(calls)), choices.random() < 0.6
        calls[place](training)
        position = other.position
        clock = position.train if training else position.evaluation
        if last.get(place, -1) == position.step or clock is not position.clock:
            FrameworkHook.next_step(other, clock)
        last[place] = position.step
        for each in (opener, other):
            each.notes.append(each.state())
    return opener.notes, other.notes
