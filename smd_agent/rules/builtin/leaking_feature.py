"""LeakingFeature: one feature that gives the label away."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from smd_agent.rules.built_in import CollectionKeys, Need, Severity, StepView
from smd_agent.rules.labels import RuleOfClasses, whole_or_not
from smd_agent.rules.parameters import Parameter, number, whole

_GAIN = "feature_importance/total_gain/"
_SHAP = "average_shap/"
_FEATURES = "data_facts/labels/train/features"
# Labels that are not of the largest class.
_FEWEST_OF_OTHERS = 20


class LeakingFeature(RuleOfClasses):
    """One feature that gives the label away.

    Good features take some rounds to tell all rows apart, and others help them. Classes of very few rows or features
    may be told apart by one, so they are left alone; so are labels that are no classes.
    """

    meaning = "from the first saved round on the rows are told apart by one feature, which has nearly all of the gain"
    share = Parameter(number, 0.95, "least part of the whole gain that is the feature's")
    right = Parameter(number, 0.999, "least part of the rows, or of pairs of them, in the right order")
    rows = Parameter(whole, 100, "fewest rows with labels")
    features = Parameter(whole, 5, "fewest features of the data")
    brings = {"feature_importance,labels,predictions,data_facts": {}}
    needs = (
        Need((CollectionKeys.FEATURE_IMPORTANCE,)),
        whole_or_not(CollectionKeys.PREDICTIONS),
        whole_or_not(CollectionKeys.LABELS),
    )
    severity = Severity.WARNING
    evidence = {
        "share": "the part of the whole gain that the feature has",
        "right": "of two classes, the area under the curve; of several, the part of the rows that is right",
        "features": "how many features the data has",
    }
    cause = "The feature is made from the label, or is known only when the label is, such as an outcome or a file order"
    advice = "Ask where the column comes from, and whether it is known at prediction; train without it to compare"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self._suspect: str | None = None
        # As far as the rounds so far tell: not all of them do.
        self._features = 0

    def take(self, step: StepView) -> None:
        """Look at the gains of a round, and at what it has reached."""
        is_first = not self._has_counted
        if not is_first and self._suspect is None:
            return
        if self.classes(step, "labels", "predictions") is None:
            return
        self._has_counted = True
        gains = dict(step.numbers(step.names(patterns=(f"^{_GAIN}",))).items())
        if not gains:
            return
        most, total = max(gains, key=gains.__getitem__), sum(gains.values())
        share = gains[most] / total if total else 0.0
        known, shap = step.numbers((_FEATURES,)).get(_FEATURES), step.names(patterns=(f"^{_SHAP}",))
        features = self._features = max(self._features, len(gains), int(known or 0), len(shap))
        right = self._right(step)
        is_met = share >= self.share and right >= self.right and features >= self.features
        if is_met and (is_first or most == self._suspect):
            self._suspect = most
            self.found(step, most, {"share": share, "right": right, "features": features})
        elif self._suspect is not None:
            self.withdraw(step, self._suspect)
            self._suspect = None

    def _right(self, step: StepView) -> float:
        """Return how well labels and predictions agree; 0 where there are too few rows, or is one class only."""
        labels, predictions = step.value("labels"), step.value("predictions")
        found = self.classes(step, "labels", "predictions")
        if labels is None or predictions is None or found is None or found[0].size < self.rows:
            return 0.0
        counts = np.bincount(found[0])
        if np.count_nonzero(counts) < 2:
            return 0.0
        if found[0].size - counts.max() < _FEWEST_OF_OTHERS:
            return 0.0
        if counts.size == 2 and predictions.size == labels.size:
            # At first, a small learning rate leaves most predictions on one side of one half.
            return _area(found[0] == 1, predictions.reshape(-1))
        return float(np.mean(found[0] == found[1]))


def _area(is_one: npt.NDArray[np.bool_], scores: npt.NDArray[np.float64]) -> float:
    """Return the area under the receiver operating characteristic: of pairs of both classes, the part in order.

    Pairs of the same score count half (Mann and Whitney).
    """
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    ones = int(is_one.sum())
    above = float(ranks[places.reshape(-1)][is_one].sum()) - ones * (ones + 1) / 2
    return above / (ones * (is_one.size - ones))
