"""Workers of a run side by side: what each of them has at the same step of the same mode."""

from __future__ import annotations

from typing import Generic, TypeVar

from smd_agent.core.modes import ModeKeys
from smd_agent.rules.built_in import BuiltInRule, Split
from smd_agent.rules.step_view import StepView

Value = TypeVar("Value")
# Workers that save the same steps are seldom farther apart.
_STEPS_KEPT = 64


class OfWorkers(BuiltInRule, Generic[Value]):
    """A rule that compares workers; a run of which one worker was saved is not for it.

    A subclass has ``value_of``, what is compared of a step, and ``compare``. Steps are paired as their mode counts
    them: over all modes, workers of which one evaluates and the others do not count differently.
    """

    modes = (ModeKeys.TRAIN, ModeKeys.GLOBAL)
    split = Split.RUN

    def start(self) -> None:
        """Begin with nothing seen."""
        self._steps: dict[tuple[ModeKeys, int], dict[str, Value]] = {}
        self._workers: set[str] = set()
        self._compared = 0

    def value_of(self, step: StepView) -> Value:
        """Return what is compared of a step."""
        raise NotImplementedError

    def compare(self, step: StepView, value: Value, others: dict[str, Value]) -> None:
        """Compare a worker with those that were seen at the same step before it: at least one, the first one first."""
        raise NotImplementedError

    def take(self, step: StepView) -> None:
        """Take in a step of a worker."""
        self._workers.add(step.worker)
        key = (step.mode, step.step)
        if key not in self._steps:
            if len(self._steps) >= _STEPS_KEPT:
                del self._steps[next(iter(self._steps))]
            self._steps[key] = {}
        others, value = self._steps[key], self.value_of(step)
        if others:
            self._compared += len(others) == 1
            self.compare(step, value, others)
        others[step.worker] = value

    @property
    def is_concerned(self) -> bool:
        """True if there are several workers."""
        return len(self._workers) > 1

    @property
    def steps_that_count(self) -> int:
        """At how many steps workers were compared."""
        return self._compared
