"""TargetOutOfReach: targets that the activation before a loss cannot return."""

from __future__ import annotations

import math

from smd_agent.rules.built_in import Severity
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.usage import Fault, Numbers, UsageInARow

# How far a target is beyond an end, as a part of the range, so that it is not meant, as noise on labels is.
_FAR = 0.5


class TargetOutOfReach(UsageInARow):
    """Targets that the activation before a loss cannot return.

    A few targets beyond the range are left alone, as noise and outliers are. It is a problem where they are far beyond
    it, by half of the range or more; of a range with one end, that is what the targets have of it.
    """

    meaning = "the prediction comes from an activation such as a sigmoid or a ReLU, and targets are beyond its range"
    share = Parameter(number, 0.05, "largest share of a batch's targets that are")
    patience = Parameter(whole, 3, "saved steps in a row")
    kind = "loss"
    facts = ("out_of_reach",)
    evidence = {
        "out_of_reach": "the share of targets that the prediction cannot reach",
        "reach_min": "the smallest value that the activation can return, if there is one",
        "reach_max": "the largest one, if there is one",
        "target_min": "the smallest target",
        "target_max": "the largest one",
    }
    cause = "The last activation does not fit the targets, or these were not scaled for it"
    advice = "Scale the targets to what the last activation returns, or leave that activation out"
    short = "targets out of reach: {}"

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one loss."""
        if numbers["out_of_reach"] <= self.share:
            return None
        return Fault(severity=Severity.PROBLEM if _is_far(numbers) else Severity.WARNING)


def _is_far(numbers: Numbers) -> bool:
    low, high = numbers["target_min"], numbers["target_max"]
    least, most = numbers.get("reach_min", -math.inf), numbers.get("reach_max", math.inf)
    size = min(most, high) - max(least, low)
    if not (math.isinf(least) or math.isinf(most)):
        size = most - least
    return max(least - low, high - most) > _FAR * size
