"""Predictions beside their labels, at the last step that has both: classes that are confused, or residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from smd_agent.core.collection_keys import CollectionKeys
from smd_agent.rules.labels import classes_of
from smd_agent.rules.step_view import Place, StepView

MOST_CLASSES = 20
_BINS = 30
# More values than classes of a classification: numbers that are whole by chance.
_FEWER_CLASSES = 1000


@dataclass(frozen=True)
class Outcome:
    """Labels and predictions of one step.

    Attributes:
        place: the step.
        labels: the tensor's name.
        predictions: the tensor's name.
        counts: by label and predicted class; None of a regression.
        residuals: prediction minus label, each; None of a classification.
    """

    place: Place
    labels: str
    predictions: str
    counts: npt.NDArray[np.int64] | None = None
    residuals: npt.NDArray[np.float64] | None = None

    @property
    def bins(self) -> list[tuple[float, float, int]]:
        """The residuals in bins of equal width: lower end, upper end, how many."""
        values = np.zeros(0) if self.residuals is None else self.residuals[np.isfinite(self.residuals)]
        if not values.size:
            return []
        counts, edges = np.histogram(values, _BINS)
        return [*zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True)]


def outcome_of(step: StepView) -> Outcome | None:
    """Return what a step has of labels and predictions; None where it lacks one, or they do not fit each other."""
    labels, predictions = step.names(CollectionKeys.LABELS), step.names(CollectionKeys.PREDICTIONS)
    if len(labels) != 1 or not predictions:
        return None
    true, predicted = step.value(labels[0]), step.value(predictions[0])
    if true is None or predicted is None or true.dtype.kind not in "fiub" or predicted.dtype.kind not in "fiub":
        return None
    classes = classes_of(true, predicted)
    if classes is not None and max(int(part.max()) for part in classes) < _FEWER_CLASSES:
        size = 1 + max(int(part.max()) for part in classes)
        counts = np.bincount(classes[0] * size + classes[1], minlength=size * size).reshape(size, size)
        return Outcome(step.place, labels[0], predictions[0], counts=counts)
    if true.size != predicted.size or not true.size:
        return None
    residuals = predicted.reshape(-1).astype(np.float64) - true.reshape(-1).astype(np.float64)
    return Outcome(step.place, labels[0], predictions[0], residuals=residuals)
