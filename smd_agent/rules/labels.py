"""Labels and predictions of a step as numbers of classes, and the base of the rules that look at them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.rules.built_in import BuiltInRule, Need
from smd_agent.rules.finding import NotJudged
from smd_agent.rules.step_view import StepView

Classes = npt.NDArray[np.int64]

_MOST_CLASSES = 10_000


def whole_or_not(collection: str) -> Need:
    """Return the need of labels, which can be told from statistics of them only when they are looked at."""
    return Need((collection,), ("", "mean", "min", "max", "l2", "std", "abs_mean"))


class RuleOfClasses(BuiltInRule):
    """A rule that compares the labels of a classification with its predictions."""

    def start(self) -> None:
        """Begin with nothing seen."""
        self._has_counted = self._is_something_else = self._is_not_whole = False

    def classes(
        self, step: StepView, labels: str, predictions: str, argmax: bool = False
    ) -> tuple[Classes, Classes] | None:
        """Return what `classes_of` does of two tensors of a step; None, which is remembered, where that cannot be."""
        true, predicted = step.value(labels), step.value(predictions)
        if true is None or predicted is None:
            self._is_not_whole = True
            return None
        found = classes_of(true, predicted, argmax)
        self._is_something_else |= found is None
        return found

    @property
    def has_judged(self) -> bool:
        """True if there were enough labels of classes."""
        return self._has_counted

    def fits(self, collections: Collection[str]) -> bool:
        """Tell whether it is a classification."""
        return super().fits(collections) and not self._is_something_else

    def not_judged(self) -> NotJudged:
        """Say what is lacking."""
        if self._is_not_whole:
            return NotJudged(self.rule_name, "only statistics of labels or predictions were saved", "add --raw")
        return super().not_judged()


def classes_of(
    labels: npt.NDArray[Any], predictions: npt.NDArray[Any], argmax: bool = False
) -> tuple[Classes, Classes] | None:
    """Return the class of each label and of the prediction for it; None where they are of no classification.

    Args:
        labels: numbers from 0 of classes, in any shape; or one-hot, in the shape of the predictions.
        predictions: as many numbers of classes; or for each label numbers for all classes, of which the largest counts;
            or for each label the probability that it is 1 and not 0.
        argmax: the last axis of the predictions is that of the classes, however they look.
    """
    labels, predictions = (np.squeeze(array, -1) if _is_column(array) else array for array in (labels, predictions))
    if labels.dtype.kind not in "fiub" or predictions.dtype.kind not in "fiub":
        return None
    if labels.shape == predictions.shape and labels.ndim > 1 and _is_one_hot(labels):
        labels = labels.argmax(-1)
    true = _whole(labels)
    if true is None:
        return None
    if predictions.ndim and predictions.size and (argmax or predictions.ndim == labels.ndim + 1):
        chosen: Classes | None = predictions.argmax(-1).reshape(-1)
    else:
        chosen = _whole(predictions)
        if chosen is None and true.size and true.max() <= 1 and predictions.min() >= 0 and predictions.max() <= 1:
            chosen = (predictions > 0.5).astype(np.int64).reshape(-1)
    return (true, chosen) if chosen is not None and chosen.size == true.size > 0 else None


def _is_column(array: npt.NDArray[Any]) -> bool:
    return array.ndim > 1 and array.shape[-1] == 1


def _is_one_hot(array: npt.NDArray[Any]) -> bool:
    return bool(array.size) and bool(np.isin(array, (0, 1)).all() and (array.sum(-1) == 1).all())


def _whole(array: npt.NDArray[Any]) -> Classes | None:
    """Return numbers as whole ones, flat; None unless they are, from 0 up."""
    if not array.size or not np.isfinite(array).all():
        return None
    flat = array.reshape(-1)
    whole: Classes = flat.astype(np.int64)
    return whole if bool((whole == flat).all()) and whole.min() >= 0 and whole.max() < _MOST_CLASSES else None
