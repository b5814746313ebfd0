"""The loss of a guess: what a loss of classes would be for one who knows only how frequent each label is.

``guess``  what the loss of a call would be for one who always answers with the frequencies of all labels so far.
``least``  what it would be with each label known: above 0 where labels are no certainties.

Of a loss that weighs its classes:

``rare_weight``  to which power of its rareness a class is weighed: 1 where classes are balanced, 0 where all weigh the
                 same, -1 where each weighs as much as it is frequent.
``imbalance``    how many times the most frequent class has been a label for each time of the rarest one.

Labels are counted over the steps that are saved, because those of one batch say little: sorted data has one label in
it, and a small batch not all of them. On average a guess is the entropy of the labels, in nats. It is that of the
call's own labels, so that it goes up and down with the loss. The counts stay on the device of the labels.

Arrays are those of NumPy or PyTorch, without gradients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Labels for each class that must have been counted, before frequencies are known.
_FOR_EACH = 20
_MOST_CLASSES = 65_536
_MOST_COLUMNS = 4096
# Counts of float32 stay whole below that.
_MOST_COUNTED = 2.0**22

Facts = dict[str, Any]


class LossGuesses:
    """The labels of a run that losses were given so far, by the loss.

    Args:
        library: NumPy or PyTorch.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self._counts: dict[str, _Counts] = {}
        # Losses of other models, of which the next call is the first one of another training.
        self._ended: set[str] = set()

    def begin_anew(self) -> None:
        """Forget all labels: another model is trained; of each loss the first call that follows has no guess."""
        self._ended.update(self._counts)
        self._counts.clear()

    def of_classes(self, loss: str, counts: Any, labels: int, weight: Any = None, smoothing: float = 0.0) -> Facts:
        """The guess after labels were counted.

        Args:
            loss: its name.
            counts: how often each class is a label in a call, float32 of shape (classes,).
            labels: how many labels that are, with those that are ignored.
            weight: of the classes, of the same shape; None: all have the same.
            smoothing: which part of a label is spread over all classes.

        Returns:
            ``guess`` and ``least``, in nats; nothing where too few labels were counted.
        """
        classes = counts.shape[0]
        if classes > _MOST_CLASSES:
            return {}
        known = self._add(loss, counts, labels)
        if known is None or known.seen < _FOR_EACH * classes:
            return {}
        own, known_shares = (
            _shares(counted if weight is None else counted * weight, smoothing) for counted in (counts, known.sums)
        )
        return {
            "guess": self._cross_entropy(own, known_shares),
            "least": _entropy_of_smoothed(smoothing / classes, classes),
            **({} if weight is None else self._weighing(known.sums, weight)),
        }

    def of_weighed_yes(self, loss: str, target: Any, weight: Any) -> Facts:
        """The facts of a weight of yes, one for all columns or one for each, of targets of shape (rows, columns)."""
        rows, columns = target.shape
        if columns > _MOST_COLUMNS or weight.reshape(-1).shape[0] not in (1, columns):
            return {}
        known = self._add(loss, self._library.asarray(target, dtype=self._library.float32).sum(0), rows)
        if known is None or known.seen < 2 * _FOR_EACH:
            return {}
        with np.errstate(all="ignore"):
            rareness = self._library.log((known.seen - known.sums) / known.sums)
            return self._power(rareness, self._library.log(weight.reshape(-1) + 0 * known.sums), rareness * 0)

    def _weighing(self, counts: Any, weight: Any) -> Facts:
        with np.errstate(all="ignore"):
            rareness, power = self._library.log(counts.max() / counts), self._library.log(weight)
            is_known = self._library.isfinite(rareness) & self._library.isfinite(power)
            sums = self._library.where(is_known, rareness, self._library.zeros_like(rareness)).sum()
            return self._power(rareness, power, sums / is_known.sum())

    def _power(self, rareness: Any, power: Any, middle: Any) -> Facts:
        """The slope of the logarithms of weights over those of rareness, as far as both are finite."""
        is_known = self._library.isfinite(rareness) & self._library.isfinite(power)
        zero = self._library.zeros_like(rareness)
        off = self._library.where(is_known, rareness - middle, zero)
        slope = (off * self._library.where(is_known, power, zero)).sum() / (off * off).sum()
        most = self._library.where(is_known, abs(rareness), zero).max()
        return {"rare_weight": slope, "imbalance": self._library.exp(most)}

    def of_yes_and_no(self, loss: str, target: Any) -> Facts:
        """The same of targets from 0 to 1, of which each column has a frequency: of shape (rows, columns)."""
        rows, columns = target.shape
        if columns > _MOST_COLUMNS:
            return {}
        target = self._library.asarray(target, dtype=self._library.float32)
        sums = target.sum(0)
        known = self._add(loss, sums, rows)
        if known is None or known.seen < 2 * _FOR_EACH:
            return {}
        own, shares = sums / rows, known.sums / known.seen
        unsure = self._of_both(target, target)
        return {
            "guess": self._of_both(own, shares) / columns,
            "least": unsure / (rows * columns),
        }

    def _add(self, loss: str, sums: Any, rows: int) -> _Counts | None:
        """The labels of a loss with these; None where another model's have ended."""
        known = self._counts.get(loss)
        if known is None or known.sums.shape != sums.shape or _device(known.sums) != _device(sums):
            known = self._counts[loss] = _Counts(self._library.zeros_like(sums))
        known.add(sums, rows)
        if loss in self._ended:
            self._ended.remove(loss)
            return None
        return known

    def _of_both(self, true: Any, answer: Any) -> Any:
        return self._cross_entropy(true, answer) + self._cross_entropy(1 - true, 1 - answer)

    def _cross_entropy(self, true: Any, answer: Any) -> Any:
        """The sum of -x log y, where what x has none of counts nothing."""
        # Of logarithms of 0 the program is to hear no warning.
        with np.errstate(all="ignore"):
            return -self._library.where(true == 0, 0.0, true * self._library.log(answer)).sum()


class _Counts:
    def __init__(self, sums: Any) -> None:
        self.sums = sums
        self.seen = 0.0

    def add(self, sums: Any, rows: float) -> None:
        self.sums = self.sums + sums
        self.seen += rows
        if self.seen > _MOST_COUNTED:
            self.sums, self.seen = self.sums / 2, self.seen / 2


def _device(array: Any) -> object:
    # Arrays of NumPy have one since its version 2.
    return getattr(array, "device", None)


def _shares(counts: Any, smoothing: float) -> Any:
    shares = counts / counts.sum()
    return (1 - smoothing) * shares + smoothing / counts.shape[0] if smoothing else shares


def _entropy_of_smoothed(spread: float, classes: int) -> float:
    """The entropy of one label, of which each of the other classes has got so much."""
    shares = (1 - (classes - 1) * spread, *[spread] * (classes > 1))
    return -sum(
        share * math.log(share) * times for share, times in zip(shares, (1, classes - 1), strict=False) if share > 0
    )
