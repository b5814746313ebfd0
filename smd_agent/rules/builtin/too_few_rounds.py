"""TooFewRounds: trees whose learning rate is too small for their number to reach the labels."""

from __future__ import annotations

from smd_agent.framework.training_facts import DATA_FACTS
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.parameters import Parameter, number, whole
from smd_agent.rules.usage import Numbers, RuleOfData


class TooFewRounds(RuleOfData):
    """Trees whose learning rate is too small for their number to reach the labels.

    Each round takes the share ``learning_rate`` off what is left of the errors, if its tree is as right as a tree can
    be. So after ``n`` rounds ``(1 - learning_rate) ** n`` of them is left at least (shrinkage: Friedman, "Greedy
    Function Approximation", 2001).
    """

    meaning = "with this learning rate and so few rounds, most of the errors are left even if each tree is right"
    left = Parameter(number, 0.5, "largest share of the errors that may be left")
    rounds = Parameter(whole, 20, "rounds that a training has at least, if it is more than a trial")
    kind = "rounds"
    facts = ("learning_rate",)
    severity = Severity.WARNING
    evidence = {
        "learning_rate": "by what part each round reduces what is left, at most",
        "asked": "how many rounds there are to be",
        "left": "the share of the errors that is left then, at least",
    }
    cause = "The learning rate is too small for so few rounds: the predictions stay near the mean of the labels"
    advice = "Give learning_rate=0.1, or more rounds: about 3 / learning_rate of them, with early stopping"
    short = "too few rounds for the learning rate"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one training."""
        rate, asked = numbers["learning_rate"], numbers.get("asked", 0)
        left = (1 - min(max(rate, 0.0), 1.0)) ** asked
        if asked >= self.rounds and left > self.left:
            self.found(step, f"{DATA_FACTS}{of}/learning_rate", {**self.evidence_of(numbers), "left": left})
