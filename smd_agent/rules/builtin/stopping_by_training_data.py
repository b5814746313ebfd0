"""StoppingByTrainingData: early stopping that goes by the rows that are trained."""

from __future__ import annotations

from smd_agent.framework.training_facts import DATA_FACTS
from smd_agent.rules.built_in import Severity, StepView
from smd_agent.rules.usage import Numbers, RuleOfData

_NO_OTHER = "Early stopping goes by the training data, and no evaluation set has other rows"
_GIVE_OTHER = "Keep rows back that are not trained, and give them as the last set of evals or eval_set"


class StoppingByTrainingData(RuleOfData):
    """Early stopping that goes by the rows that are trained.

    XGBoost's early stopping goes by the last evaluation set, unless a callback names another one. The loss of the
    training data falls on while the model learns it by heart. A set has the rows of the training data if it is the same
    matrix, or if sizes and labels are the same in the same order.
    """

    meaning = "the evaluation set that XGBoost's early stopping goes by is the training data"
    kind = "evaluation"
    facts = ("training_rows",)
    severity = Severity.WARNING
    evidence = {
        "stopping_rounds": "how many rounds without a better value end the training",
        "other_sets": "how many evaluation sets have other rows",
    }
    cause = "The training data is the last of the evaluation sets, and early stopping goes by the last one"
    advice = "Put the set of other rows last, or name it: xgboost.callback.EarlyStopping(rounds=..., data_name=...)"
    short = "early stopping goes by the training data"

    def look_at(self, step: StepView, of: str, numbers: Numbers) -> None:
        """Look at one evaluation set."""
        if numbers["training_rows"] == 1 and "stopping_rounds" in numbers:
            evidence = self.evidence_of(numbers)
            tensor = f"{DATA_FACTS}{of}/training_rows"
            if numbers.get("other_sets"):
                self.found(step, tensor, evidence)
            else:
                self.found(step, tensor, evidence, cause=_NO_OTHER, advice=_GIVE_OTHER)
