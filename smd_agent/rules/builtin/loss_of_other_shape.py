"""LossOfOtherShape: a loss that compares each prediction with each target, because their shapes differ."""

from __future__ import annotations

from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import USAGE
from smd_agent.rules import parameters
from smd_agent.rules.parameters import Parameter
from smd_agent.rules.step_view import StepView
from smd_agent.rules.usage import Numbers, RuleOfUsage

_OWN = (
    "A column meets a row in a loss that the program works out itself, so that each prediction is compared with, or"
    " multiplied by, what belongs to all others"
)


class LossOfOtherShape(RuleOfUsage):
    """A loss that compares each prediction with each target, because their shapes differ.

    One target for all predictions, or one prediction for all targets, is no mistake. Of a loss that the program works
    out itself, such as `((output - y) ** 2).mean()`, it is told from the graph of autograd; where such a loss picks
    or weighs pairs, as a ranking does, they are meant.
    """

    meaning = "predictions and targets of a loss have shapes such as (N, 1) and (N,), which are broadcast to (N, N)"
    parameters = (Parameter("patience", parameters.whole, 2, "saved steps in a row"),)
    modes = (ModeKeys.TRAIN, ModeKeys.GLOBAL)
    fewest_steps = 2
    kind = "loss"
    facts = ("input_repeated",)
    evidence = {
        "input_repeated": "with how many targets each prediction is compared",
        "target_repeated": "with how many predictions each target is compared",
    }
    cause = "The shapes differ by an axis of length 1, so that the model learns the mean of the targets"
    advice = "Give both the same shape, such as by output.squeeze(1) or target.unsqueeze(1)"

    patience: int

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one loss."""
        evidence = {name: numbers.get(name, 1.0) for name in self.evidence}
        if self.row(of, min(evidence.values()) > 1) >= self.patience:
            cause = _OWN if "/own_loss_" in of else ""
            self.found(step, f"{USAGE}{of}/input_repeated", evidence, cause=cause)
