"""ClassWeightsInverted: weights of classes, in a loss, that grow with how frequent the classes are."""

from __future__ import annotations

from smd_agent.rules.built_in import Severity
from smd_agent.rules.parameters import Parameter, number
from smd_agent.rules.usage import Fault, Numbers, UsageInARow, is_of_yes_or_no

_OF_YES = (
    "pos_weight makes the rarer answer count less: it is the number of positive labels by that of negative ones, or"
    " near it"
)
_TURN = "Turn the quotient round: pos_weight is the number of negative labels by that of positive ones"


class ClassWeightsInverted(UsageInARow):
    """Weights of classes, in a loss, that grow with how frequent the classes are.

    A loss of PyTorch is given `weight` or `pos_weight`, and the labels of the saved steps tell how frequent each class
    is. Balanced weights are its inverse. Of classes without a label or a weight nothing is known.
    """

    meaning = "weights of the classes of a loss make frequent ones count more, and rare ones less"
    imbalance = Parameter(number, 2.0, "least ratio between the labels of the most frequent class and of the rarest")
    power = Parameter(number, -0.5, "largest power of rareness by which classes are weighed")
    kind = "loss"
    facts = ("rare_weight",)
    severity = Severity.WARNING
    evidence = {
        "rare_weight": "to which power of its rareness a class is weighed: 1 if balanced, -1 the wrong way round",
        "imbalance": "how many labels the most frequent class has for each one of the rarest",
    }
    cause = "The weights of the classes are as their numbers of labels are, so that rare classes count even less"
    advice = "Weigh by the inverse: weight = labels.size / (classes * count of each class)"
    short = "weights make rare classes count less: {}"

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with the weights of a loss."""
        is_imbalanced = numbers.get("imbalance", 1.0) >= self.imbalance
        if not is_imbalanced or not numbers.get("rare_weight", 0.0) <= self.power:
            return None
        return Fault(_OF_YES, advice=_TURN) if is_of_yes_or_no(of) else Fault()
