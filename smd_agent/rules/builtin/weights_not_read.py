"""WeightsNotRead: an objective of one's own that does not read the weights of rows."""

from __future__ import annotations

from smd_agent.framework.training_facts import DATA_FACTS
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.usage import Numbers, RuleOfData


class WeightsNotRead(RuleOfData):
    """An objective of one's own that does not read the weights of rows.

    XGBoost multiplies gradients of its own objectives by the rows' weights, but leaves that to an objective that is
    given as `obj`. Its code, and that of the functions it calls, is read: nothing there has to do with weights, and it
    holds no array of as many numbers as there are rows.
    """

    meaning = "rows have weights, and an objective of one's own, which has to multiply by them, does not read them"
    kind = "objective"
    facts = ("ignores_weights",)
    severity = Severity.WARNING
    evidence = {"ignores_weights": "1 if nothing that the objective can reach reads weights"}
    cause = "XGBoost leaves weights to an objective that is given as obj, and nothing in this one reads them"
    advice = "Multiply gradient and Hessian by dtrain.get_weight() in the objective"
    short = "weights of rows count for nothing: the objective does not read them"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at the objective of a training."""
        if numbers["ignores_weights"]:
            self.found(step, f"{DATA_FACTS}{of}/ignores_weights", self.evidence_of(numbers))
