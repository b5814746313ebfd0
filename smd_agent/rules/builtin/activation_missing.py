"""ActivationMissing: a loss that expects probabilities or their logarithms, and is given what is neither."""

from __future__ import annotations

from smd_agent.rules.built_in import Severity
from smd_agent.rules.usage import Expected, Fault, Numbers, UsageInARow, expected_by

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


class ActivationMissing(UsageInARow):
    """A loss that expects probabilities or their logarithms, and is given what is neither.

    A loss of logarithms can be used to pick other numbers by class, so that this is a warning.
    """

    meaning = "a loss that expects probabilities, or their logarithms, is given what no softmax or sigmoid has returned"
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

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong where a loss expects probabilities or their logarithms."""
        expected = expected_by(of, numbers)
        least, most = numbers.get("input_min", 0.0), numbers.get("input_max", 0.0)
        if expected is Expected.PROBABILITIES:
            if least < -_NOISE or most > 1 + _NOISE:
                return Fault()
            return Fault(_LINEAR) if numbers.get("linear") == 1 else None
        if expected is Expected.LOGARITHMS:
            is_none = most > _NOISE or numbers.get("log_sum_error", 0.0) > _LOG_NOISE
            are_probabilities = least >= 0 and numbers.get("row_sum_error", 1.0) <= _NOISE * 10
            # They may be logarithms along the other axis.
            is_told = are_probabilities or numbers.get("sample_sum_error", 1.0) <= _NOISE * 10
            return Fault(_LOGARITHMS, Severity.WARNING, _USE_LOG) if is_none and not is_told else None
        return None
