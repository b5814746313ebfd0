"""The loss of a guess: what a loss of classes would be for one who knows only how frequent each label is.

``guess``  what the loss of a call would be for one who always answers with the frequencies of all labels so far.
``least``  what it would be with each label known: above 0 where labels are no certainties.

Labels are counted over the steps that are saved, because those of one batch say little: sorted data has one label in
it, and a small batch not all of them. On average a guess is the entropy of the labels, in nats. It is that of the
call's own labels, so that it goes up and down with the loss. The counts stay on the device of the labels.
"""

from __future__ import annotations

import math
from typing import Any

import torch

# Labels for each class that must have been counted, before frequencies are known.
_FOR_EACH = 20
_MOST_CLASSES = 65_536
_MOST_COLUMNS = 4096
# Counts of float32 stay whole below that.
_MOST_COUNTED = 2.0**22

Facts = dict[str, Any]


class LossGuesses:
    """The labels of a run that losses were given so far, by the loss."""

    def __init__(self) -> None:
        self._counts: dict[str, _Counts] = {}

    def of_classes(
        self, loss: str, counts: torch.Tensor, labels: int, weight: torch.Tensor | None, smoothing: float
    ) -> Facts:
        """What it is, after labels were counted.

        Args:
            loss: its name.
            counts: how often each class is a label in a call, float32 of shape (classes,).
            labels: how many labels that are, with those that are ignored.
            weight: of the classes, of the same shape.
            smoothing: which part of a label is spread over all classes.

        Returns:
            ``guess`` and ``least``, in nats; nothing where too few labels were counted.
        """
        classes = counts.shape[0]
        if classes > _MOST_CLASSES:
            return {}
        known = self._add(loss, counts, labels)
        if known.seen < _FOR_EACH * classes:
            return {}
        own, known_shares = (
            _shares(counted if weight is None else counted * weight.detach(), smoothing)
            for counted in (counts, known.sums)
        )
        return {
            "guess": _cross_entropy(own, known_shares),
            "least": _entropy_of_smoothed(smoothing / classes, classes),
        }

    def of_yes_and_no(self, loss: str, target: torch.Tensor) -> Facts:
        """The same of targets from 0 to 1, of which each column has a frequency: of shape (rows, columns)."""
        rows, columns = target.shape
        if columns > _MOST_COLUMNS:
            return {}
        target = target.detach().to(torch.float32)
        sums = target.sum(0)
        known = self._add(loss, sums, rows)
        if known.seen < 2 * _FOR_EACH:
            return {}
        own, shares = sums / rows, known.sums / known.seen
        unsure = _cross_entropy(target, target) + _cross_entropy(1 - target, 1 - target)
        return {
            "guess": (_cross_entropy(own, shares) + _cross_entropy(1 - own, 1 - shares)) / columns,
            "least": unsure / target.numel(),
        }

    def _add(self, loss: str, sums: torch.Tensor, rows: int) -> _Counts:
        known = self._counts.get(loss)
        if known is None or known.sums.shape != sums.shape or known.sums.device != sums.device:
            known = self._counts[loss] = _Counts(torch.zeros_like(sums))
        known.add(sums, rows)
        return known


class _Counts:
    def __init__(self, sums: torch.Tensor) -> None:
        self.sums = sums
        self.seen = 0.0

    def add(self, sums: torch.Tensor, rows: float) -> None:
        self.sums = self.sums + sums
        self.seen += rows
        if self.seen > _MOST_COUNTED:
            self.sums, self.seen = self.sums / 2, self.seen / 2


def _shares(counts: torch.Tensor, smoothing: float) -> torch.Tensor:
    shares = counts / counts.sum()
    return (1 - smoothing) * shares + smoothing / counts.shape[0] if smoothing else shares


def _cross_entropy(true: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
    """The sum of -x log y."""
    return -torch.xlogy(true, answer).sum()


def _entropy_of_smoothed(spread: float, classes: int) -> float:
    """That of one label, of which each of the other classes has got so much."""
    shares = (1 - (classes - 1) * spread, *[spread] * (classes > 1))
    return -sum(
        share * math.log(share) * times for share, times in zip(shares, (1, classes - 1), strict=False) if share > 0
    )
