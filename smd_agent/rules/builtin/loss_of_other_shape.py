"""LossOfOtherShape: a loss that compares each prediction with each target, because their shapes differ."""

from __future__ import annotations

from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Fault, Numbers, UsageInARow

_OWN = (
    "A column meets a row in a loss that the program works out itself, so that each prediction is compared with, or"
    " multiplied by, what belongs to all others"
)


class LossOfOtherShape(UsageInARow):
    """A loss that compares each prediction with each target, because their shapes differ.

    One target for all predictions, or one prediction for all targets, is no mistake. Of a loss that the program works
    out itself, such as `((output - y) ** 2).mean()`, it is told from the graph of autograd, of a `tf.function` or of a
    step of `fit`; where such a loss picks or weighs pairs, as a ranking does, they are meant.
    """

    meaning = "predictions and targets of a loss have shapes such as (N, 1) and (N,), which are broadcast to (N, N)"
    patience = Parameter(whole, 2, "saved steps in a row")
    fewest_steps = 2
    kind = "loss"
    facts = ("input_repeated",)
    evidence = {
        "input_repeated": "with how many targets each prediction is compared",
        "target_repeated": "with how many predictions each target is compared",
    }
    cause = "The shapes differ by an axis of length 1, so that the model learns the mean of the targets"
    advice = "Give both the same shape, such as by output.squeeze(1) or target.unsqueeze(1)"

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one loss."""
        are_broadcast = min(numbers.get(name, 1.0) for name in self.evidence) > 1
        return Fault(_OWN if "/own_loss_" in of else "") if are_broadcast else None
