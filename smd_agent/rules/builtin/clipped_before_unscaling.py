"""ClippedBeforeUnscaling: gradients that are clipped while they are multiplied by the scale of the loss."""

from __future__ import annotations

from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.usage import Fault, Numbers, UsageInARow


class ClippedBeforeUnscaling(UsageInARow):
    """Gradients that are clipped while they are multiplied by the scale of the loss.

    A limit that is large beside the scale may have been multiplied by it, or be one that limits nothing.
    """

    meaning = "gradients are clipped before a scaler divides them by its scale, to a limit that is small beside that"
    patience = Parameter(whole, 3, "saved steps in a row")
    ratio = Parameter(number, 0.01, "part of the scale from which on the limit may be meant for scaled gradients")
    kind = "optimizer"
    facts = ("clipped_scaled",)
    evidence = {
        "clip_scale": "the scale that gradients were multiplied by when they were clipped",
        "clip_limit": "the largest norm, or the largest value, that they were clipped to",
    }
    cause = "The scaler unscales the gradients after they are clipped, so that the limit is as many times too small"
    advice = "Call scaler.unscale_(optimizer) after the backward pass, before the gradients are clipped"

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one optimizer."""
        scale, limit = numbers.get("clip_scale", 1.0), numbers.get("clip_limit", 0.0)
        is_scaled = numbers["clipped_scaled"] == 1 and scale > 1
        return Fault() if is_scaled and limit < self.ratio * scale else None
