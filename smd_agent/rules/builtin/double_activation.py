"""DoubleActivation: a loss that applies softmax or sigmoid itself, and is given what has been through it."""

from __future__ import annotations

from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import USAGE
from smd_agent.rules import parameters
from smd_agent.rules.finding import Severity
from smd_agent.rules.parameters import Parameter
from smd_agent.rules.step_view import StepView
from smd_agent.rules.usage import Numbers, RuleOfUsage

# By how much a row of probabilities in bfloat16 may differ from 1.
_NOISE = 0.01
# Logarithms of probabilities are at most 0, but for rounding.
_ABOVE = 1e-3

_SOFTMAX = "The loss applies softmax itself, and is given probabilities: the model ends with a softmax"
_SIGMOID = "The loss applies sigmoid itself, and is given probabilities: the model ends with a sigmoid"
_NOT_LOG = "NLLLoss expects logarithms of probabilities, and is given probabilities: the model ends with a softmax"
_LOGITS = "NLLLoss expects logarithms of probabilities, and is given positive numbers: log_softmax was left out"
_USE_LOG = "Let the model end with log_softmax, or give CrossEntropyLoss what its last linear layer returns"


class DoubleActivation(RuleOfUsage):
    """A loss that applies softmax or sigmoid itself, and is given what has been through it; or the other way round."""

    meaning = "cross entropy is given probabilities where it expects logits, or NLLLoss anything but their logarithms"
    parameters = (Parameter("patience", parameters.whole, 3, "saved steps in a row"),)
    modes = (ModeKeys.TRAIN, ModeKeys.GLOBAL)
    fewest_steps = 3
    kind = "loss"
    facts = ("input_min",)
    evidence = {
        "input_min": "the smallest value that the loss was given",
        "input_max": "the largest one",
        "row_sum_error": "by how much the sum over the classes differs from 1 at most",
    }
    cause = _SOFTMAX
    advice = "Give the loss what the last linear layer returns, and apply softmax or sigmoid for predictions only"

    patience: int

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one loss."""
        found = _fault(of, numbers)
        if self.row(of, found is not None) >= self.patience and found is not None:
            cause, severity = found
            advice = _USE_LOG if "nll_loss" in of else self.advice
            evidence = {name: numbers[name] for name in self.evidence if name in numbers}
            self.found(step, f"{USAGE}{of}/input_min", evidence, severity=severity, cause=cause, advice=advice)


def _fault(of: str, numbers: Numbers) -> tuple[str, Severity] | None:
    """The cause and the severity of what is wrong with the input of a loss."""
    least, most = numbers["input_min"], numbers.get("input_max", 0.0)
    sums_to_1 = numbers.get("row_sum_error", 1.0) <= _NOISE and numbers.get("classes", 0) > 1
    is_activated = numbers.get("activated") == 1
    if "nll_loss" in of:
        if least >= 0 and sums_to_1:
            return _NOT_LOG, Severity.PROBLEM
        return (_LOGITS, Severity.WARNING) if most > _ABOVE else None
    if "binary" in of:
        return (_SIGMOID, Severity.PROBLEM) if is_activated else None
    return (_SOFTMAX, Severity.PROBLEM) if is_activated or (least >= 0 and sums_to_1) else None
