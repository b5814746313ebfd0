"""ActivationMissing: a loss that expects probabilities or their logarithms, and is given what is neither."""

from __future__ import annotations

from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import USAGE
from smd_agent.rules import parameters
from smd_agent.rules.finding import Severity
from smd_agent.rules.loss_inputs import Expected, expected_by
from smd_agent.rules.parameters import Parameter
from smd_agent.rules.step_view import StepView
from smd_agent.rules.usage import Numbers, RuleOfUsage

# Probabilities lie between 0 and 1 and their logarithms are at most 0, but for rounding.
_NOISE = 1e-3
# By how much the logarithm of a sum of probabilities in float16 may differ from 0.
_LOG_NOISE = 0.1

_LINEAR = (
    "The loss expects probabilities, and is given what a layer without softmax or sigmoid has returned: what is below 0"
    " or above 1 is clipped, and teaches nothing"
)
_LOGARITHMS = (
    "The loss expects logarithms of probabilities, and is given numbers that are none, so that it can fall for ever:"
    " log_softmax was left out"
)
_USE_LOG = (
    "Let the model end with log_softmax, or take a loss that applies it itself: CrossEntropyLoss, and of Gluon"
    " SoftmaxCrossEntropyLoss without from_logits=True"
)


class ActivationMissing(RuleOfUsage):
    """A loss that expects probabilities or their logarithms, and is given what is neither.

    A loss of logarithms can be used to pick other numbers by class, so that this is a warning.
    """

    meaning = "a loss that expects probabilities, or their logarithms, is given what no softmax or sigmoid has returned"
    parameters = (Parameter("patience", parameters.whole, 3, "saved steps in a row"),)
    modes = (ModeKeys.TRAIN, ModeKeys.GLOBAL)
    fewest_steps = 3
    kind = "loss"
    facts = ("input_min", "linear")
    evidence = {
        "linear": "1: a linear layer without an activation has returned what the loss was given",
        "input_min": "the smallest value that the loss was given",
        "input_max": "the largest one",
        "log_sum_error": "by how much the logarithm of the sum of what should be probabilities differs from 0 at most",
    }
    cause = (
        "The loss expects probabilities, and is given numbers below 0 or above 1, which are clipped or have no"
        " logarithm: the model ends without softmax or sigmoid"
    )
    advice = (
        "Tell the loss that it is given logits (Keras: from_logits=True, Gluon: without from_sigmoid=True), or let the"
        " model end with a softmax, where there is one output, with a sigmoid"
    )

    patience: int

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one loss."""
        found = _fault(of, numbers)
        if self.row(of, found is not None) >= self.patience and found is not None:
            cause, severity, advice = found
            evidence = {name: numbers[name] for name in self.evidence if name in numbers}
            fact = next(fact for fact in self.facts if fact in numbers)
            self.found(step, f"{USAGE}{of}/{fact}", evidence, severity=severity, cause=cause, advice=advice)


def _fault(of: str, numbers: Numbers) -> tuple[str, Severity, str] | None:
    """The cause, the severity and the advice of what is wrong with the input of a loss; empty ones: the rule's."""
    expected = expected_by(of, numbers)
    least, most = numbers.get("input_min", 0.0), numbers.get("input_max", 0.0)
    if expected is Expected.PROBABILITIES:
        if least < -_NOISE or most > 1 + _NOISE:
            return "", Severity.PROBLEM, ""
        return (_LINEAR, Severity.PROBLEM, "") if numbers.get("linear") == 1 else None
    if expected is Expected.LOGARITHMS:
        is_none = most > _NOISE or numbers.get("log_sum_error", 0.0) > _LOG_NOISE
        are_probabilities = least >= 0 and numbers.get("row_sum_error", 1.0) <= _NOISE * 10
        return (_LOGARITHMS, Severity.WARNING, _USE_LOG) if is_none and not are_probabilities else None
    return None
