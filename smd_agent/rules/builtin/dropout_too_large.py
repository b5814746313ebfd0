"""DropoutTooLarge: a dropout layer that leaves out nearly all of what it is given."""

from __future__ import annotations

from smd_agent.rules.built_in import Severity
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.usage import Fault, Numbers, UsageInARow


class DropoutTooLarge(UsageInARow):
    """A dropout layer that leaves out nearly all of what it is given.

    A model of which no dropout layer is in training mode is none.
    """

    meaning = "a model is trained with a dropout layer that drops at least as large a share as the threshold"
    threshold = Parameter(number, 0.8, "smallest share that is too large")
    patience = Parameter(whole, 2, "saved steps in a row")
    fewest_steps = 2
    kind = "model"
    facts = ("dropped",)
    severity = Severity.WARNING
    evidence = {"dropped": "the largest share that a dropout layer of the model drops"}
    cause = "The share to keep was given as p, as other libraries want it: p is the share that is dropped"
    advice = "Give the share to drop, such as nn.Dropout(0.1); up to 0.5 is usual"
    short = "dropout leaves little: {}"

    def fault(self, of: str, numbers: Numbers) -> Fault | None:
        """Return what is wrong with one model."""
        is_too_large = numbers["dropped"] >= self.threshold and numbers.get("dropout", 1.0) > 0
        return Fault() if is_too_large else None
