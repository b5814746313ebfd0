"""Random calls of models, counted by their counters and, beside that, as every other step of a hook is."""

from __future__ import annotations

import random

from smd_agent.core.clock import ModeClock, Pulse
from smd_agent.core.modes import ModeKeys
from smd_agent.framework.hook import FrameworkHook


class Opener:
    """Notes what steps are opened and closed; which are due follows from the seed."""

    def __init__(self, seed):
        self.clocks = {mode: ModeClock(mode) for mode in ModeKeys}
        self.pulse = Pulse(self.clocks[ModeKeys.GLOBAL])
        self.follow_calls()
        self.notes = []
        self._random = random.Random(seed)

    def follow_calls(self):
        self.pulse.train, self.pulse.evaluation = self.clocks[ModeKeys.TRAIN], self.clocks[ModeKeys.EVAL]

    def set_mode(self, mode):
        self.pulse.train = self.pulse.evaluation = self.clocks[mode]

    def start_step(self):
        self._note("start")
        self.pulse.open = self._random.random() < 0.7
        self.pulse.clock.due = self.pulse.clock.step + self._random.randint(1, 4)

    def finish_step(self):
        self._note("finish")
        self.pulse.open = False

    def state(self):
        pulse = self.pulse
        return pulse.step, pulse.open, pulse.clock.mode, {mode: (c.step, c.due) for mode, c in self.clocks.items()}

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
        pulse = other.pulse
        clock = pulse.train if training else pulse.evaluation
        if last.get(place, -1) == pulse.step or clock is not pulse.clock:
            FrameworkHook.next_step(other, clock)
        last[place] = pulse.step
        for each in (opener, other):
            each.notes.append(each.state())
    return opener.notes, other.notes
