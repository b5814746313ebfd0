"""FeatureImportanceOverweight: a model that rests on a few of its features."""

from __future__ import annotations

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.rules import parameters
from smd_agent.rules.built_in import BuiltInRule, Need, Split
from smd_agent.rules.finding import Severity
from smd_agent.rules.parameters import Parameter
from smd_agent.rules.step_view import StepView


class FeatureImportanceOverweight(BuiltInRule):
    """A model that rests on a few of its features.

    Of few features a few are most, and the first trees have few. So `check` wants 12 features that are in trees, and
    the same at each of the last saved rounds; a program is told of each round, as documented.
    """

    meaning = "a few features hold nearly all of the importance, though the trees have many"
    parameters = (
        Parameter("threshold", parameters.number, 0.8, "largest part of the whole importance for those few"),
        Parameter("nfeatures", parameters.whole, 3, "how many they are"),
        Parameter(
            "tensor_regex", str, ".*feature_importance/weight", "regular expression: the kind of importance to look at"
        ),
        Parameter("fewest_features", parameters.whole, 12, "features that are in trees", documented=0),
        Parameter("patience", parameters.whole, 3, "saved rounds in a row, to the last one", documented=1),
    )
    brings = {"feature_importance": {"save_interval": 500}}
    needs = (Need((CollectionKeys.FEATURE_IMPORTANCE,)),)
    split = Split.WORKER
    severity = Severity.NOTE
    evidence = {
        "share": "the part of the whole importance that the few hold",
        "features": "how many features are in trees",
        "most": "the part of the most important one",
    }
    cause = "The others say little; or one of the few gives the label away, and is not known when predictions are made"
    advice = "Look at what the most important feature is, and train without it to see what the others can do"

    threshold: float
    nfeatures: int
    tensor_regex: str
    fewest_features: int
    patience: int

    def start(self) -> None:
        """Begin with nothing seen."""
        self._in_a_row = 0

    def take(self, step: StepView) -> None:
        """Look at the importances of a round."""
        importance = step.numbers(step.names(patterns=(self.tensor_regex,)))
        shares = sorted(dict(importance.items()).items(), key=lambda one: -one[1])
        total = sum(share for _, share in shares)
        if not total:
            return
        few = sum(share for _, share in shares[: self.nfeatures]) / total
        is_met = few > self.threshold and len(shares) >= self.fewest_features
        self._in_a_row = self._in_a_row + 1 if is_met else 0
        if self.patience > 1 and not is_met:
            self.withdraw(step)
        if is_met and self._in_a_row >= self.patience:
            self.found(step, None, {"share": few, "features": len(shares), "most": shares[0][1] / total})
