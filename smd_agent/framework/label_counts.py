"""The labels of one call of a loss of classes, counted by class, on whatever device they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

FACTS: Mapping[tuple[str, ...], str] = {
    ("labels",): "how many labels there are, without those that are ignored",
    ("ignored",): "the share of labels that are",
    ("label_min", "label_max"): "the smallest and the largest label; where all are ignored, the smallest is above the"
    " largest",
    ("top_label", "top_share"): "the most frequent label, and its share of those that are not ignored",
    ("top_at_end",): "of the most frequent label, the share with which its row ends: no other label comes behind it."
    " Only of labels of two dimensions, and of those that were made flat together with the input",
}
"""All of them, by name, with what they are; the documentation has them from here."""

_MOST_CLASSES = 262_144
_NONE = np.iinfo(np.int64)


class LabelCounts:
    """The labels that are looked at, the first ones.

    Args:
        part: those, whole numbers in one dimension, an array of NumPy or a tensor of PyTorch; not empty.
        kept: of the same shape, which of them count; the others may be anything.
        classes: how many there are; None if that is not known.
        library: NumPy or PyTorch.

    Attributes:
        size: how many labels are looked at, with those that are ignored.
        labels: how many without, of shape ().
        counts: of each class, float32 of shape (classes,); None where there are too many classes, or nobody knows.
    """

    def __init__(self, part: Any, kept: Any, classes: int | None, library: Any) -> None:
        self._part = part
        self._kept = kept
        self._library = library
        self.size: int = part.shape[0]
        self.labels = kept.sum()
        is_known = classes is not None and 0 < classes <= _MOST_CLASSES
        self.counts = _counts(part, kept, classes, library) if is_known else None

    def facts(self, row_length: int | None) -> dict[str, Any]:
        """The facts by name.

        Args:
            row_length: of rows in which the labels come; None where they come in none.
        """
        library = self._library
        found = {
            "labels": self.labels,
            "label_min": library.where(self._kept, self._part, int(_NONE.max)).min(),
            "label_max": library.where(self._kept, self._part, int(_NONE.min)).max(),
            "ignored": 1 - self.labels / self.size,
        }
        if self.counts is not None:
            top = self.counts.argmax()
            found.update(top_label=top, top_share=self.counts.max() / library.clip(self.labels, 1, None))
            if row_length is not None and self.size >= row_length > 1:
                found["top_at_end"] = self._at_end(top, row_length)
        return found

    def _at_end(self, top: Any, length: int) -> Any:
        library = self._library
        is_top = self._part[: self.size // length * length].reshape(-1, length) == top
        ending = library.asarray(library.flip(is_top, (1,)), dtype=library.float32).cumprod(1)
        return ending.sum() / library.clip(is_top.sum(), 1, None)


def _counts(part: Any, kept: Any, classes: Any, library: Any) -> Any:
    if library is np:
        # A loss of Keras or Gluon may have taken labels that there are not.
        known = part[kept & (part >= 0) & (part < classes)]
        return np.bincount(known.astype(np.int64), minlength=classes).astype(np.float32)
    counted = kept.to(library.float32)
    # Unlike bincount, it may be used where all algorithms have to be deterministic, and waits for no device.
    return counted.new_zeros(classes).index_add_(0, part.masked_fill(~kept, 0), counted)
