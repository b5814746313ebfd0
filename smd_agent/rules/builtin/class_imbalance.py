"""ClassImbalance: classes that are rare, and that the model gets wrong."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from smd_agent.rules.built_in import CollectionKeys, Names, NotJudged, Severity, StepView
from smd_agent.rules.labels import RuleOfClasses, whole_or_not
from smd_agent.rules.parameters import Parameter, flag, number, whole

Counts = npt.NDArray[np.int64]

# A share of fewer labels says little of a class. Of 10 that are all wrong, the part that is wrong in the long run is
# above 0.74 with 95 % confidence (0.05 ** (1 / 10)).
_FEWEST_OF_A_CLASS = 10


class ClassImbalance(RuleOfClasses):
    """Classes that are rare, and that the model gets wrong.

    Rare classes are no fault, and neither are wrong predictions of a young model. So `check` wants both of a class of
    10 rows or more, each time that so many labels are judged, up to the end of the run; a program is told of either,
    each time, as documented. Labels and predictions must be saved whole. Without names given they are the collections
    `labels` and `predictions`, as XGBoost has them; a regression is not for this rule.
    """

    meaning = "a class has far fewer labels than the largest one, and most of its labels are predicted wrong"
    threshold_imbalance = Parameter(number, 10.0, "largest ratio between the labels of two classes")
    threshold_misprediction = Parameter(
        number, 0.9, "largest part of a class's labels that is predicted wrong", documented=0.7
    )
    samples = Parameter(whole, 500, "labels that are gathered before they are judged")
    argmax = Parameter(flag, False, "predictions have an axis of classes, the last; otherwise shapes tell")
    labels_regex: Parameter[str | None] = Parameter(
        str, None, "regular expression found in the name of labels", documented=".*labels"
    )
    predictions_regex = Parameter(
        str, None, "regular expression found in the name of predictions", documented=".*predictions"
    )
    patience = Parameter(whole, 3, "times in a row that labels are judged", documented=1)
    both = Parameter(flag, True, "a class must be rare and predicted wrong", documented=False)
    brings_always = {"labels,predictions": {}}
    chosen_by = ("labels_regex", "predictions_regex")
    severity = Severity.NOTE
    evidence = {
        "class": "the number of the class: the worst, or the smallest",
        "labels": "how many labels it has",
        "largest": "how many the largest class has",
        "imbalance": "the one divided by the other",
        "wrong": "part of its labels that is predicted wrong",
    }
    cause = "The model sees too little of the class to learn it"
    advice = "Weight the classes in the loss, draw rare ones more often, or move the threshold of the decision"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        self.needs = () if self.labels_regex and self.predictions_regex else _NEEDS
        self._labels, self._wrong, self._rows = (np.zeros(0, np.int64) for _ in range(3))
        self._last = b""

    def take(self, step: StepView) -> None:
        """Count the labels of a step, and those that are predicted wrong."""
        labels = _chosen(step, self.labels_regex, CollectionKeys.LABELS)
        predictions = _chosen(step, self.predictions_regex, CollectionKeys.PREDICTIONS)
        for true_name, predicted_name in zip(labels, predictions, strict=False):
            found = self.classes(step, true_name, predicted_name, self.argmax)
            if found is None:
                continue
            size = max(len(self._labels), int(found[0].max()) + 1)
            self._labels = _added(self._labels, found[0], size)
            self._wrong = _added(self._wrong, found[0][found[0] != found[1]], size)
            # An evaluation set has the same rows each time.
            own = blake2b(found[0].tobytes(), digest_size=16).digest()
            self._rows = _added(self._rows, found[0][:0] if own == self._last and self._rows.any() else found[0], size)
            self._last = own
            if self._labels.sum() >= self.samples:
                self._judge(step, true_name)
                self._labels, self._wrong, self._rows = self._labels[:0], self._wrong[:0], self._rows[:0]

    def _judge(self, step: StepView, name: str) -> None:
        self._has_counted = True
        there = np.flatnonzero(self._labels)
        labels = self._labels[there]
        wrong = self._wrong[there] / labels
        ratios = labels.max() / labels
        is_rare, is_wrong = ratios > self.threshold_imbalance, wrong > self.threshold_misprediction
        is_met = is_rare & is_wrong & (self._rows[there] >= _FEWEST_OF_A_CLASS) if self.both else is_rare | is_wrong
        row = self.row("", bool(is_met.any()))
        if self.patience > 1 and not row:
            self.withdraw(step, name)
        if row and row >= self.patience:
            places = np.flatnonzero(is_met)
            worst = places[np.argmax(wrong[places])]
            evidence = {
                "class": int(there[worst]),
                "labels": int(labels[worst]),
                "largest": int(labels.max()),
                "imbalance": float(ratios[worst]),
                "wrong": float(wrong[worst]),
            }
            self.found(step, name, evidence)

    def not_judged(self) -> NotJudged:
        """Say what is lacking."""
        if self._is_not_whole or not self._steps_seen or not self._labels.size:
            return super().not_judged()
        reason = f"it takes {self.samples} labels to judge, and there are {int(self._labels.sum())}"
        return self.too_few(reason)


_NEEDS = (whole_or_not(CollectionKeys.LABELS), whole_or_not(CollectionKeys.PREDICTIONS))


def _chosen(step: StepView, pattern: str | None, collection: str) -> Names:
    return step.names(patterns=(pattern,)) if pattern else step.names(collection)


def _added(counts: Counts, classes: Counts, size: int) -> Counts:
    added: Counts = np.bincount(classes, minlength=size)
    added[: len(counts)] += counts
    return added
