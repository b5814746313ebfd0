"""The loss of single steps of a model, out of the running mean of it that Keras keeps.

That mean is a sum over the rows of all batches since it was last reset, and their number; what a step adds to both
tells the loss of its batch. To read them runs no part of the model, and waits for nothing where they are in main
memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tensorflow.python.ops import gen_resource_variable_ops
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from smd_agent.formats.series import ABSENT
from smd_agent.framework.keras.plain_access import attribute, is_of_keras
from smd_agent.framework.keras.types import Model

Read = Callable[[], float]

# A loss that the rounding of the sum may have changed by more than this part is not told.
_MOST_ROUNDING = 1e-3
# Steps after which a mean that has not counted any of them is looked at no more.
_LOOKED_AT = 3


def reader(variable: Any) -> Read | None:
    """What reads a number that a variable holds; None where that would wait for an accelerator or other replicas."""
    # Keras 3's own is around one of TensorFlow's.
    inside = attribute(variable, "_value", variable)
    if type(inside) is not ResourceVariable or not inside.dtype.is_floating or inside.shape.rank != 0:
        return None
    handle, dtype = inside.handle, inside.dtype
    if "device:CPU" not in handle.device:
        return None

    # The method ``numpy`` takes several times as long, in every step.
    def read() -> float:
        return float(gen_resource_variable_ops.read_variable_op(handle, dtype))

    return read


class TrackedLoss:
    """One running mean.

    Args:
        total: reads the sum.
        count: reads the number of rows.
        precision: the largest part of a number by which it is rounded.
    """

    def __init__(self, total: Read, count: Read, precision: float) -> None:
        self._read_total = total
        self._read_count = count
        self._precision = precision
        self._total = self._count = 0.0
        self.has_counted = False

    def begin(self) -> None:
        """A step begins: whatever was reset, or counted otherwise, since the last one is passed over."""
        total = self._read_total()
        if total != self._total or not total:
            self._total, self._count = total, self._read_count()

    def end(self) -> float:
        """The mean loss of the rows that were counted since the step began; ``ABSENT`` where it is not known."""
        before, count_before = self._total, self._count
        self._total, self._count = total, count = self._read_total(), self._read_count()
        rows, added = count - count_before, total - before
        if rows <= 0 or not math.isfinite(before):
            return ABSENT
        self.has_counted = True
        if not math.isfinite(total):
            return total
        is_rounded = count * self._precision > 1 or abs(total) * self._precision > abs(added) * _MOST_ROUNDING
        return ABSENT if is_rounded else added / rows


class Losses:
    """The losses of one model's steps.

    Args:
        model: has been compiled.
    """

    def __init__(self, model: Model) -> None:
        self._tracked = [*_tracked(model)]
        self._ended = 0

    def begin(self) -> None:
        """A step begins."""
        for one in self._tracked:
            one.begin()

    def end(self) -> float:
        """The loss of the step that ends; ``ABSENT`` where it is not known."""
        found = [one.end() for one in self._tracked]
        if len(found) == 1 and self._tracked[0].has_counted:
            return found[0]
        return self._choose(found)

    def _choose(self, found: list[float]) -> float:
        """The loss by the first that counts; the others are looked at no more."""
        self._ended += 1
        for one, loss in zip(self._tracked, found, strict=True):
            if one.has_counted:
                self._tracked = [one]
                return loss
        if self._ended == _LOOKED_AT:
            self._tracked = []
        return ABSENT


def _tracked(model: Model) -> Iterator[TrackedLoss]:
    """The mean that Keras's own step counts, and those that a step of the program's may count as its loss."""
    compiled = attribute(model, "compiled_loss")
    of_keras_2 = [attribute(compiled, name) for name in ("_total_loss_mean", "_loss_metric")]
    means = [attribute(model, "_loss_tracker"), *of_keras_2]
    means += [one for one in attribute(model, "_metrics", ()) if attribute(one, "name") == "loss"]
    for mean in {id(one): one for one in means if one is not None}.values():
        if type(mean).__name__ != "Mean" or not is_of_keras(type(mean)):
            continue
        total, count = attribute(mean, "total"), attribute(mean, "count")
        read_total, read_count = reader(total), reader(count)
        if read_total is not None and read_count is not None:
            kind = attribute(total, "_value", total).dtype.as_numpy_dtype
            yield TrackedLoss(read_total, read_count, float(np.finfo(kind).eps) / 2)
