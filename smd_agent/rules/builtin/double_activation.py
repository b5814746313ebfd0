"""DoubleActivation: a loss that applies softmax or sigmoid itself, and is given what has been through it."""

from __future__ import annotations

from smd_agent.rules.built_in import Severity
from smd_agent.rules.usage import Expected, Fault, Numbers, UsageInARow, expected_by, is_of_yes_or_no

_OF_COUNTS = "poisson_nll_loss_"

# By how much a row of probabilities in bfloat16 may differ from 1.
_NOISE = 0.01

_SOFTMAX = "The loss applies softmax itself, and is given probabilities: the model ends with a softmax"
_SIGMOID = "The loss applies sigmoid itself, and is given probabilities: the model ends with a sigmoid"
_NOT_LOG = "The loss expects logarithms of probabilities, and is given probabilities: the model ends with a softmax"
_NOT_LOG_RATES = (
    "PoissonNLLLoss expects logarithms of rates, as long as it is not told log_input=False, and is given rates: the"
    " model ends with an exponential, a softplus or a ReLU"
)
_TELL_RATES = "Give the loss log_input=False, or what the last linear layer returns"
_USE_LOG = "Let the model end with log_softmax, or give CrossEntropyLoss what its last linear layer returns"
_UNDONE = (
    "The loss is told from_logits=True, and is given probabilities: the model ends with a softmax or a sigmoid. Keras"
    " sees that, warns, and takes what came before it, as long as nothing stands between the two"
)
_TELL_ALIKE = "Leave out from_logits=True, or the activation of the last layer"


class DoubleActivation(UsageInARow):
    """A loss that applies softmax or sigmoid itself, and is given what has been through it.

    Where Keras takes the values before that instead, nothing is computed wrongly, and it is a note.
    """

    meaning = "a loss is given probabilities where it expects logits, or their logarithms"
    kind = "loss"
    facts = ("input_min", "activated")
    evidence = {
        "activated": "1: softmax or sigmoid has returned what the loss was given",
        "input_min": "the smallest value that the loss was given",
        "input_max": "the largest one",
        "row_sum_error": "by how much the sum over the classes differs from 1 at most",
    }
    cause = _SOFTMAX
    advice = "Give the loss what the last linear layer returns, and apply softmax or sigmoid for predictions only"

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong where a loss expects logits, or logarithms."""
        if of.partition("/")[2].startswith(_OF_COUNTS):
            return Fault(_NOT_LOG_RATES, advice=_TELL_RATES) if numbers.get("activated") == 1 else None
        expected = expected_by(of, numbers)
        sums_to_1 = numbers.get("row_sum_error", 1.0) <= _NOISE and numbers.get("classes", 0) > 1
        are_probabilities = sums_to_1 and numbers.get("input_min", -1.0) >= 0
        if expected is Expected.LOGARITHMS:
            return Fault(_NOT_LOG, advice=_USE_LOG) if are_probabilities else None
        if expected is not Expected.LOGITS:
            return None
        if numbers.get("undone"):
            return Fault(_UNDONE, Severity.NOTE, _TELL_ALIKE)
        is_activated = numbers.get("activated") == 1
        if is_of_yes_or_no(of):
            return Fault(_SIGMOID) if is_activated else None
        return Fault(_SOFTMAX) if is_activated or are_probabilities else None
