"""GradientNotCleared: an update that uses gradients which the one before has used already."""

from __future__ import annotations

from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import USAGE
from smd_agent.rules import parameters
from smd_agent.rules.parameters import Parameter
from smd_agent.rules.step_view import StepView
from smd_agent.rules.usage import Numbers, RuleOfUsage


class GradientNotCleared(RuleOfUsage):
    """An update that uses gradients which the one before has used already.

    Passes that add to gradients before one update are none, nor is what one model's loss leaves in the gradients of
    another until that clears them.
    """

    meaning = "backward passes add to gradients that were there before, and nothing clears them around the update"
    parameters = (Parameter("patience", parameters.whole, 2, "saved steps in a row"),)
    modes = (ModeKeys.TRAIN, ModeKeys.GLOBAL)
    fewest_steps = 3
    kind = "optimizer"
    facts = ("kept_gradient",)
    evidence = {"kept_gradient": "l2 of what was in the optimizer's gradients before the step's first backward pass"}
    cause = "zero_grad is not called between two updates, or not on all that the optimizer updates"
    advice = "Call optimizer.zero_grad() once for each update, before the backward pass"

    patience: int

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one optimizer."""
        kept = numbers["kept_gradient"]
        # What is not a number has not been cleared either.
        if self.row(of, kept != 0) >= self.patience:
            self.found(step, f"{USAGE}{of}/kept_gradient", {"kept_gradient": kept})
