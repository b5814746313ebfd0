"""The hook that the gradients of tapes are saved with, and what counts its steps and names its values."""

from __future__ import annotations

from typing import NamedTuple

from smd_agent import session
from smd_agent.framework.hook_source import HookSource
from smd_agent.framework.tape_steps import GradientSteps
from smd_agent.tensorflow.hook import TensorflowHook
from smd_agent.tensorflow.tape.facts import TapeFacts
from smd_agent.tensorflow.tape.values import TapeValues
from smd_agent.tensorflow.tape_rows import TapeRows


class Saving(NamedTuple):
    """The hook, and its parts, that the gradients of tapes go to."""

    hook: TensorflowHook
    steps: GradientSteps
    values: TapeValues
    facts: TapeFacts
    rows: TapeRows


class TapeRun:
    """Knows the process's hook, which may become another one.

    Args:
        source: gives the hook when the first gradient of a variable comes up.
    """

    def __init__(self, source: HookSource[TensorflowHook]) -> None:
        self._source = source
        self._present = HookSource(TensorflowHook)
        self.last: Saving | None = None

    def known(self) -> Saving | None:
        """The hook and its parts that were used last, if that is still the process's hook."""
        last = self.last
        return last if last is not None and last.hook is session.current_of(TensorflowHook) else None

    def current(self) -> Saving | None:
        """The hook and its parts to save with now; None: there is no hook."""
        known = self.known()
        if known is not None:
            return known
        hook = self._source.hook()
        if hook is None:
            return None
        values = TapeValues(hook)
        facts = TapeFacts(hook, hook.recorder, values.names.variable)
        self.last = Saving(hook, GradientSteps(hook), values, facts, hook.tape_rows)
        return self.last

    def paused(self) -> bool:
        """True if gradients do not count now, because fit or a session counts the steps itself."""
        known = self.known()
        hook = self._present.hook() if known is None else known.hook
        return hook is not None and hook.position.inside
