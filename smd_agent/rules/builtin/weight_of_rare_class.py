"""WeightOfRareClass: a weight of classes that makes the rare one count less."""

from __future__ import annotations

from math import log

from smd_agent.framework.training_facts import DATA_FACTS
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.parameters import Parameter, number
from smd_agent.rules.usage import Numbers, RuleOfData

# Between the labels of two classes: from there on the rarer one is rare, whatever it is weighed by.
_RARE = 4.0
# By which part a weight may differ from a quotient that a program has computed of the same labels.
_ROUNDING = 1e-3

_AGAINST = "scale_pos_weight makes the rare class count less, as if it were false alarms of it that cost most"
_IF_NOT_MEANT = "Set scale_pos_weight to the number of labels of 0 by that of 1, unless it is meant so"


class WeightOfRareClass(RuleOfData):
    """A weight of classes that makes the rare one count less.

    `scale_pos_weight` multiplies what rows with the label 1 count. XGBoost's documentation advises the number of labels
    of 0 divided by that of 1; the wrong way round it makes a rare class rarer. Where the weight is that quotient of the
    training labels to a part in a thousand, it is a problem; where it is near it, as that of other labels would be, a
    warning; where a class that is four times as rare counts less by any other weight, a note: false alarms may cost
    more than misses. Weights of rows are counted in.
    """

    meaning = "scale_pos_weight makes the rarer class count less, above all if it is its share turned upside down"
    imbalance = Parameter(number, 2.0, "least ratio between the labels of the two classes")
    factor = Parameter(number, 1.25, "how far from the quotient a weight is near it")
    kind = "labels"
    facts = ("scale_pos_weight",)
    severity = Severity.WARNING
    evidence = {
        "scale_pos_weight": "the weight of a label of 1",
        "positives": "how many labels of 1 the training data has",
        "negatives": "how many labels of 0",
        "balanced": "the weight that makes both classes count the same",
    }
    cause = "scale_pos_weight is the number of labels of 1 by that of 0, so that the rare class counts even less"
    advice = "Turn the quotient round: scale_pos_weight is the number of labels of 0 by that of 1"
    short = "scale_pos_weight makes the rare class count less"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the labels of a training."""
        weight, positives, negatives = (numbers[name] for name in ("scale_pos_weight", "positives", "negatives"))
        counted = weight * numbers.get("sample_weight", 1.0)
        balanced = negatives / positives
        if max(balanced, 1 / balanced) < self.imbalance or not 0 < counted < float("inf"):
            return
        # Both above 1, or both below: the rare class counts more.
        if log(counted) * log(balanced) >= 0:
            return
        evidence = {"scale_pos_weight": weight, "positives": positives, "negatives": negatives, "balanced": balanced}
        off = abs(log(weight * balanced))
        tensor = f"{DATA_FACTS}{of}/scale_pos_weight"
        if off <= log(self.factor):
            severity = Severity.PROBLEM if off <= _ROUNDING else Severity.WARNING
            self.found(step, tensor, evidence, severity=severity)
        elif max(balanced, 1 / balanced) >= _RARE:
            self.found(step, tensor, evidence, severity=Severity.NOTE, cause=_AGAINST, advice=_IF_NOT_MEANT)
