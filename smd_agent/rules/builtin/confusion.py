"""Confusion: classes that are taken for others."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from smd_agent.rules.built_in import NotJudged, Severity, StepView
from smd_agent.rules.labels import RuleOfClasses, whole_or_not
from smd_agent.rules.parameters import Parameter, number, whole


class Confusion(RuleOfClasses):
    """Classes that are taken for others.

    The confusion matrix counts labels and predictions of a step: C[label][prediction]. What is judged is each column:
    of the predictions of a class, the part that is right, and the part that is of each other class. (It is documented
    of smdebug that the diagonal is divided by its own sum. With several classes such parts cannot all be near 1, which
    the documented limit asks for.) A class that has labels and is never predicted counts as never right.
    """

    meaning = "of the predictions of a class too few are right, or too many are of one other class"
    category_no: Parameter[int | None] = Parameter(whole, None, "number of classes, or as many as there are")
    labels = Parameter(str, "labels", "name of the labels")
    predictions = Parameter(str, "predictions", "name of the predictions")
    labels_collection = Parameter(str, "labels", "collection that has the labels, if none is called so")
    predictions_collection = Parameter(str, "predictions", "the same of the predictions")
    min_diag = Parameter(number, 0.9, "least part of the predictions of a class that is right")
    max_off_diag = Parameter(number, 0.1, "largest part of them that is of one other class")
    brings_always = {"labels,predictions": {}}
    chosen_by = ("labels_collection", "predictions_collection", "labels", "predictions")
    only_by_name = True
    severity = Severity.WARNING
    evidence = {
        "prediction": "the class that is predicted",
        "predicted": "how often it is",
        "right": "part of these predictions that is right",
        "label": "the other class that most of them are of",
        "confused": "part of them that is of that class",
    }
    cause = "The model does not tell these classes apart: too little training, or too little in the data"
    advice = "Look at rows of the two classes, and at how many labels each class has"

    def start(self) -> None:
        """Begin with nothing seen."""
        super().start()
        wanted = ((self.labels, self.labels_collection), (self.predictions, self.predictions_collection))
        # What is called otherwise may be in any collection, or in none.
        self.needs = tuple(whole_or_not(collection) for name, collection in wanted if name in _USUAL)

    def take(self, step: StepView) -> None:
        """Count and judge the labels of a step."""
        label_name = _named(step, self.labels, self.labels_collection)
        prediction_name = _named(step, self.predictions, self.predictions_collection)
        if label_name is None or prediction_name is None:
            return
        found = self.classes(step, label_name, prediction_name)
        if found is None:
            return
        self._has_counted = True
        size = max(self.category_no or 0, *(int(part.max()) + 1 for part in found))
        counts = np.bincount(found[0] * size + found[1], minlength=size * size).reshape(size, size)
        evidence = self._worst(counts)
        if evidence is not None:
            self.found(step, prediction_name, evidence)

    def _worst(self, counts: npt.NDArray[np.int64]) -> dict[str, float] | None:
        """Return the numbers of the class whose predictions are the worst, if any break a bound."""
        predicted = counts.sum(0)
        shares = counts / np.maximum(predicted, 1)
        right = np.diagonal(shares)
        others = shares - np.diag(right)
        is_there = (predicted > 0) | (counts.sum(1) > 0)
        is_met = is_there & ((right < self.min_diag) | (others.max(0) > self.max_off_diag))
        if not is_met.any():
            return None
        places = np.flatnonzero(is_met)
        worst = int(places[np.argmin(right[places])])
        label = int(others[:, worst].argmax())
        return {
            "prediction": worst,
            "predicted": int(predicted[worst]),
            "right": float(right[worst]),
            "label": label,
            "confused": float(others[label, worst]),
        }

    def not_judged(self) -> NotJudged:
        """Say what is lacking."""
        if self._is_not_whole or (self.needs and not self._steps_seen):
            return super().not_judged()
        names = f"{self.labels} and {self.predictions}"
        return NotJudged(self.rule_name, f"{names} were not saved in one step", f"add {names} to --save")


_USUAL = ("labels", "predictions")


def _named(step: StepView, name: str, collection: str) -> str | None:
    """Return the tensor of this name; else the only one of the collection."""
    exact = step.names(patterns=(f"^{re.escape(name)}$",))
    members = exact or step.names(collection)
    return members[0] if len(members) == 1 else None
