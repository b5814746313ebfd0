"""MarginNotLogarithm: exposures that are given as margins, of which the logarithm is meant."""

from __future__ import annotations

from smd_agent.framework.training_facts import DATA_FACTS
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.parameters import Parameter, number
from smd_agent.rules.usage import Numbers, RuleOfData


class MarginNotLogarithm(RuleOfData):
    """Exposures that are given as margins, of which the logarithm is meant.

    An objective of counts or amounts multiplies its expectation by the exponential of the margin. The labels are
    proportional to the margins themselves: they fit better to that than to the margins' exponentials, by more standard
    errors than `above_logarithm`, and than to the best power of them, by more than `above_power`.
    """

    meaning = "the labels go with base_margin itself, but the objective takes it for a logarithm"
    above_logarithm = Parameter(number, 4.0, "least difference to the margins' exponentials, in standard errors")
    above_power = Parameter(number, 2.5, "least difference to the best power of them, in standard errors")
    kind = "margins"
    facts = ("over_logarithm",)
    severity = Severity.WARNING
    evidence = {
        "over_logarithm": "how much better labels fit to the margins than to their exponentials, in standard errors",
        "over_power": "how much better than to the best power of the exponentials, in standard errors",
    }
    cause = "The labels are proportional to base_margin, but the objective multiplies by its exponential"
    advice = "Give the logarithm, base_margin=np.log(exposure), to the training, the evaluation sets and predict"
    short = "base_margin is not the logarithm of the exposure"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the margins of a training."""
        if numbers["over_logarithm"] >= self.above_logarithm and numbers["over_power"] >= self.above_power:
            self.found(step, f"{DATA_FACTS}{of}/over_logarithm", self.evidence_of(numbers))
