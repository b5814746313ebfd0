"""The beginning of a step in a training loop of which only the gradients are seen, such as one with a GradientTape.

Nothing in such a loop says so, but what it differentiates does: a step is over when a variable is differentiated again.
So a GAN's two losses make one step, whether their tapes are open together or one after the other, and every micro-batch
of an accumulated gradient is a step. A tape that was opened before the step began belongs to it, however often it is
asked, as persistent and nested tapes are. A variable that comes up for the first time when all those of the last step
have had their turn begins a step too: it is another model's, which is trained after the first one.
"""

from __future__ import annotations

import weakref
from typing import Protocol

from smd_agent.core.clock import ModeClock, RunPosition
from smd_agent.framework.weak_references import Reference


class StepCounter(Protocol):
    """Counts the steps of a run."""

    @property
    def position(self) -> RunPosition:
        """The position of the run."""

    def next_step(self, clock: ModeClock) -> None:
        """Begin the next step, counted by this clock."""


class GradientSteps:
    """Advances the step by what is differentiated; variables are known by identity alone.

    Args:
        counter: the hook whose steps they are.
    """

    __slots__ = ("_counter", "_known", "_last", "_opened", "_position", "_seen")

    def __init__(self, counter: StepCounter) -> None:
        self._counter = counter
        self._position = counter.position
        self._opened = -2
        self._seen: set[int] = set()
        self._last: set[int] = set()
        # Weak, because the number of one that is gone may be another's.
        self._known: dict[int, weakref.ref[object]] = {}

    def reach(self, variable: object, tape_since: int) -> None:
        """Be in the step in which this gradient belongs.

        Args:
            variable: the first that is differentiated.
            tape_since: the step in which what was differentiated began to be recorded.
        """
        position = self._position
        # Somebody else (fit, a session) may have begun a step meanwhile.
        if position.step == self._opened and (tape_since < position.step or self._is_awaited(variable)):
            self._seen.add(id(variable))
            self._remember(variable)
            return
        self._counter.next_step(position.train)
        # The forward is over, and nothing tells of the update.
        position.updated = True
        self._opened = position.step
        self._last, self._seen = self._seen, {id(variable)}
        self._remember(variable)

    def _is_awaited(self, variable: object) -> bool:
        if id(variable) in self._seen:
            return False
        return self._is_known(variable) or not self._last or not self._last <= self._seen

    def _is_known(self, variable: object) -> bool:
        known = self._known.get(id(variable))
        return known is not None and known() is variable

    def _remember(self, variable: object) -> None:
        if not self._is_known(variable):
            self._known[id(variable)] = Reference(variable)
