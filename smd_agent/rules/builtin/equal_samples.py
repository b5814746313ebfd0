"""EqualSamples: batches in which one sample stands for all."""

from __future__ import annotations

from smd_agent.framework.training_facts import USED_INPUT
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.usage import Fault, Numbers, UsageInARow, numbers_of

_FACT = "equal_samples"
_CHANGING = ("min", "max", "mean", "std")


class EqualSamples(UsageInARow):
    """Batches in which one sample stands for all.

    All inputs of a model with several samples must be so, and the batch must be another one at each step: what is the
    same at all steps, such as a table of positions, is meant.
    """

    meaning = "all samples of a batch are the same at several saved steps in a row, and the batches are not"
    kind = USED_INPUT
    facts = (_FACT,)
    severity = Severity.WARNING
    evidence = {_FACT: "1: all samples that were compared are the same"}
    cause = (
        "One sample is given for the whole batch: an index that is not used, a buffer that each sample is written to,"
        " or a random number that is drawn once"
    )
    advice = "Compare two samples of a batch; use the index that __getitem__ is given, and copy what is written again"
    short = "samples of a batch are all the same: {}"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._equal: dict[str, list[bool]] = {}
        self._before: dict[str, list[float | None]] = {}

    def take(self, step: StepView) -> None:
        """Look at the inputs of each model."""
        self._equal = {}
        for of, numbers in numbers_of(step, self.kind).items():
            if _FACT in numbers:
                self._equal.setdefault(_model(of), []).append(numbers[_FACT] == 1)
        super().take(step)

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one input."""
        now = [numbers.get(name) for name in _CHANGING]
        has_changed = self._before.get(of) != now
        self._before[of] = now
        return Fault() if has_changed and all(self._equal[_model(of)]) else None


def _model(of: str) -> str:
    return of.rpartition("_")[0]
