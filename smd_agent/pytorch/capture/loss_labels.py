"""The labels of one call of a loss of classes.

``labels``                  how many labels are looked at, without those that are ignored.
``label_min``, ``label_max``  the smallest and largest of them; the smallest is above the largest where all are ignored.
``ignored``                 the share of labels that are ignored.
``top_label``, ``top_share``  the most frequent one, and its share of them.
``top_at_end``              of those, the share with which their row ends: behind them is no other label. Of labels that
                            come in rows, as those of texts do.
"""

from __future__ import annotations

from typing import Any

import torch

from smd_agent.framework.training_facts import LOOKED_AT

_MOST_CLASSES = 262_144


class Counted:
    """The labels that are looked at, the first ones, counted by class.

    Args:
        target: integers of any shape.
        ignored: a label that does not count.
        classes: how many there are.

    Attributes:
        size: how many labels are looked at, with those that are ignored.
        labels: how many without, a tensor of shape ().
        counts: of each class, float32 of shape (classes,); None where there are too many classes.
    """

    def __init__(self, target: torch.Tensor, ignored: int, classes: int) -> None:
        self._part = target.detach().reshape(-1)[:LOOKED_AT].to(torch.int64)
        self._kept = self._part != ignored
        self.size = self._part.shape[0]
        self.labels = self._kept.sum()
        self.counts = None
        if classes <= _MOST_CLASSES:
            counted = self._kept.to(torch.float32)
            # Unlike bincount, it may be used where all algorithms have to be deterministic, and waits for no device.
            self.counts = counted.new_zeros(classes).index_add_(0, self._part.masked_fill(~self._kept, 0), counted)

    def facts(self, row_length: int | None) -> dict[str, Any]:
        """The facts by name.

        Args:
            row_length: of rows in which the labels come; None where they come in none.
        """
        # Where all are ignored the smallest is above the largest.
        least = self._part.masked_fill(~self._kept, torch.iinfo(torch.int32).max).amin()
        most = self._part.masked_fill(~self._kept, torch.iinfo(torch.int32).min).amax()
        found = {"labels": self.labels, "label_min": least, "label_max": most}
        found["ignored"] = 1 - self.labels / self.size
        if self.counts is not None:
            count, top = self.counts.max(0)
            found.update(top_label=top, top_share=count / self.labels.clamp(min=1))
            if row_length is not None and self.size >= row_length > 1:
                found["top_at_end"] = self._at_end(top, row_length)
        return found

    def _at_end(self, top: torch.Tensor, length: int) -> torch.Tensor:
        rows = self._part[: self.size // length * length].reshape(-1, length)
        is_top = rows == top
        ending = is_top.flip(1).to(torch.float32).cumprod(1)
        return ending.sum() / is_top.sum().clamp(min=1)


def row_length(values: torch.Tensor, target: torch.Tensor) -> int | None:
    """How long the rows are in which labels come; None where they come in none, or in images.

    Args:
        values: the input of the loss. Where it was made flat for the loss, the graph knows its rows.
        target: the labels.
    """
    if target.dim() == 2:
        return target.shape[1]
    sizes: tuple[int, ...] = getattr(values.grad_fn, "_saved_self_sym_sizes", ())
    is_flat = target.dim() == 1 and len(sizes) == 3 and sizes[0] * sizes[1] == values.shape[0] == target.shape[0]
    return int(sizes[1]) if is_flat else None
