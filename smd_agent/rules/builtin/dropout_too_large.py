"""DropoutTooLarge: a dropout layer that leaves out nearly all of what it is given."""

from __future__ import annotations

from smd_agent.core.modes import ModeKeys
from smd_agent.framework.training_facts import USAGE
from smd_agent.rules import parameters
from smd_agent.rules.finding import Severity
from smd_agent.rules.parameters import Parameter
from smd_agent.rules.step_view import StepView
from smd_agent.rules.usage import Numbers, RuleOfUsage


class DropoutTooLarge(RuleOfUsage):
    """A dropout layer that leaves out nearly all of what it is given.

    A model of which no dropout layer is in training mode is none.
    """

    meaning = "a model is trained with a dropout layer that drops at least as large a share as the threshold"
    parameters = (
        Parameter("threshold", parameters.number, 0.8, "smallest share that is too large"),
        Parameter("patience", parameters.whole, 2, "saved steps in a row"),
    )
    modes = (ModeKeys.TRAIN, ModeKeys.GLOBAL)
    fewest_steps = 2
    kind = "model"
    facts = ("dropped",)
    severity = Severity.WARNING
    evidence = {"dropped": "the largest share that a dropout layer of the model drops"}
    cause = "The share to keep was given as p, as other libraries want it: p is the share that is dropped"
    advice = "Give the share to drop, such as nn.Dropout(0.1); up to 0.5 is usual"
    short = "dropout leaves little: {}"

    threshold: float
    patience: int

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one model."""
        dropped = numbers["dropped"]
        is_too_large = dropped >= self.threshold and numbers.get("dropout", 1.0) > 0
        if self.row(of, is_too_large) >= self.patience:
            self.found(step, f"{USAGE}{of}/dropped", {"dropped": dropped})
