"""GradientNotCleared: an update that uses gradients which the one before has used already."""

from __future__ import annotations

from smd_agent.rules.parameters import Parameter, whole
from smd_agent.rules.usage import Fault, Numbers, UsageInARow


class GradientNotCleared(UsageInARow):
    """An update that uses gradients which the one before has used already.

    Passes that add to gradients before one update are none, nor is what one model's loss leaves in the gradients of
    another until that clears them.
    """

    meaning = "backward passes add to gradients that were there before, and nothing clears them around the update"
    patience = Parameter(whole, 2, "saved steps in a row")
    kind = "optimizer"
    facts = ("kept_gradient",)
    evidence = {"kept_gradient": "l2 of what was in the optimizer's gradients before the step's first backward pass"}
    cause = "zero_grad is not called between two updates, or not on all that the optimizer updates"
    advice = (
        "Call optimizer.zero_grad() once for each update, before the backward pass; in Gluon, zero_grad() of each"
        ' parameter, or leave grad_req at "write"'
    )

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one optimizer."""
        # What is not a number has not been cleared either.
        return Fault() if numbers["kept_gradient"] != 0 else None
