"""The first steps of a training, which are saved beside those of its step rules as far as that takes little time.

Many trainings are short, and most of what goes wrong shows at once: a training of a hundred steps has some forty that
can be judged, in place of nine. A program may train several models, such as one that is trained before and one that is
tuned, or one for each fold: the first steps of each are early ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from smd_agent.core.budget import SHARE, Allowance
from smd_agent.core.clock import NEVER
from smd_agent.core.modes import ModeKeys
from smd_agent.core.overhead import overhead

ALLOWANCE = 0.5
"""Seconds of the processor that saving may take in all after the first step, however short the training is.

By the usual budget. They are nearly the same in two runs of a program, whoever else uses the machine.
"""
_WAITS = 2
"""Seconds that it may take with its waits, in allowances."""
_BUDGETS = 2
"""Part of the time since then that it may take, if that is more, in budgets; what follows is a small part of it."""

_MORE = 2
"""Trainings after the first one that have an allowance of their own."""
_OF_ANOTHER = 0.5
"""Part of the allowance of the first one that each of these has."""

# All of the first ones, every fifth after them, every 25th.
_EVERY = ((30, 1), (100, 5), (500, 25))
# Steps of evaluation come together, after many of training.
_MODES = (ModeKeys.TRAIN, ModeKeys.GLOBAL)


class EarlySteps:
    """The early steps of one run.

    Args:
        spent: tells the seconds that saving has taken so far.
        worked: tells those of the processor.
        now: tells the time in seconds.
        budget: part of the run's time; see ``HookSettings``.

    Attributes:
        is_shared: tells whether several workers write the run, who would save different steps, each by its own time.
    """

    def __init__(
        self,
        spent: Callable[[], float] = lambda: overhead.seconds,
        worked: Callable[[], float] = lambda: overhead.processor_seconds,
        now: Callable[[], float] = time.perf_counter,
        budget: float = SHARE,
    ) -> None:
        # Its first question comes when the first step, which finds the model and begins the run, is over.
        def allowed(part: float) -> tuple[Allowance, Allowance]:
            seconds, share = part * ALLOWANCE * budget / SHARE, _BUDGETS * budget
            return Allowance(seconds, share, worked, now), Allowance(_WAITS * seconds, share, spent, now)

        self._allowed = allowed
        self._allowances = [allowed(1.0)]
        # bool, called without arguments, says False.
        self.is_shared: Callable[[], bool] = bool
        # Of each mode, so that who asks twice is answered the same.
        self._decided: dict[ModeKeys, tuple[int, bool]] = {}
        # Of each mode, the step that the newest training has begun with.
        self._first: dict[ModeKeys, int] = {}

    def begin_anew(self, first: Mapping[ModeKeys, int]) -> None:
        """Count the steps from these on, of each mode, where another training begins."""
        self._first = dict(first)
        if self._decided and len(self._allowances) <= _MORE:
            self._allowances.append(self._allowed(_OF_ANOTHER))

    def takes(self, mode: ModeKeys, step: int) -> bool:
        """Tell whether a step of a mode is saved though no rule says so; asked again, it is the same."""
        if mode not in _MODES or self.next_due(mode, step) != step or self.is_shared():
            return False
        known = self._decided.get(mode)
        if known is None or known[0] != step:
            known = self._decided[mode] = step, self.has_time()
        return known[1]

    def has_time(self) -> bool:
        """True if saving has taken less than it may."""
        return any(all(allowance.is_left() for allowance in pair) for pair in self._allowances)

    def next_due(self, mode: ModeKeys, step: int) -> int:
        """The first step of a mode, from this one on, that may be saved; ``NEVER`` if none may."""
        if mode not in _MODES:
            return NEVER
        first = self._first.get(mode, 0)
        own = max(step - first, 0)
        found = ((-(-own // every) * every, end) for end, every in _EVERY)
        return next((first + one for one, end in found if one < end), NEVER)
