"""Where a step of a GradientTape loop begins.

Nothing in such a loop says so, but its tapes do: a step is over when a variable is differentiated again. So a GAN's two
tapes make one step, whether they are open together or one after the other, and every micro-batch of an accumulated
gradient is a step. A tape that was opened before the step began belongs to it, however often it is asked, as persistent
and nested tapes are. A variable that comes up for the first time when all those of the last step have had their turn
begins a step too: it is another model's, which is trained after the first one.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smd_agent.tensorflow.hook import TensorflowHook


class TapeSteps:
    """Advances a hook's step by what is differentiated."""

    __slots__ = ("_hook", "_known", "_last", "_opened", "_pulse", "_seen")

    def __init__(self, hook: TensorflowHook) -> None:
        self._hook = hook
        self._pulse = hook.pulse
        self._opened = -2
        self._seen: set[int] = set()
        self._last: set[int] = set()
        # Weak, because the number of one that is gone may be another's.
        self._known: dict[int, weakref.ref[Any]] = {}

    def reach(self, variable: Any, tape_since: int) -> None:
        """Be in the step in which this gradient belongs.

        Args:
            variable: the first that is differentiated.
            tape_since: the step in which the tape was opened.
        """
        pulse = self._pulse
        # Somebody else (fit, a session) may have begun a step meanwhile.
        if pulse.step == self._opened and (tape_since < pulse.step or self._is_awaited(variable)):
            self._seen.add(id(variable))
            self._remember(variable)
            return
        self._hook.next_step(pulse.train)
        self._opened = pulse.step
        self._last, self._seen = self._seen, {id(variable)}
        self._remember(variable)

    def _is_awaited(self, variable: Any) -> bool:
        if id(variable) in self._seen:
            return False
        return self._is_known(variable) or not self._last or not self._last <= self._seen

    def _is_known(self, variable: Any) -> bool:
        known = self._known.get(id(variable))
        return known is not None and known() is variable

    def _remember(self, variable: Any) -> None:
        if not self._is_known(variable):
            self._known[id(variable)] = weakref.ref(variable)
