"""FeatureImportanceOverweight: a model that rests on a few of its features."""

from __future__ import annotations

from smd_agent.rules.built_in import BuiltInRule, Severity, StepView
from smd_agent.rules.parameters import Parameter, number, whole


class FeatureImportanceOverweight(BuiltInRule):
    """A model that rests on a few of its features.

    Of few features a few are most, and the first trees have few. So `check` wants 12 features that are in trees, and
    the same at each of the last saved rounds; a program is told of each round, as documented.
    """

    meaning = "a few features hold nearly all of the importance, though the trees have many"
    threshold = Parameter(number, 0.8, "largest part of the whole importance for those few")
    nfeatures = Parameter(whole, 3, "how many they are")
    tensor_regex = Parameter(
        str, ".*feature_importance/weight", "regular expression: the kind of importance to look at"
    )
    fewest_features = Parameter(whole, 12, "features that are in trees", documented=0)
    patience = Parameter(whole, 3, "saved rounds in a row, to the last one", documented=1)
    brings = {"feature_importance": {"save_interval": 500}}
    severity = Severity.NOTE
    evidence = {
        "share": "the part of the whole importance that the few hold",
        "features": "how many features are in trees",
        "most": "the part of the most important one",
    }
    cause = "The others say little; or one of the few gives the label away, and is not known when predictions are made"
    advice = "Look at what the most important feature is, and train without it to see what the others can do"

    def take(self, step: StepView) -> None:
        """Look at the importances of a round."""
        importance = step.numbers(step.names(patterns=(self.tensor_regex,)))
        shares = sorted(dict(importance.items()).items(), key=lambda one: -one[1])
        total = sum(share for _, share in shares)
        if not total:
            return
        few = sum(share for _, share in shares[: self.nfeatures]) / total
        is_met = few > self.threshold and len(shares) >= self.fewest_features
        row = self.row("", is_met)
        if self.patience > 1 and not is_met:
            self.withdraw(step)
        if is_met and row >= self.patience:
            self.found(step, None, {"share": few, "features": len(shares), "most": shares[0][1] / total})
