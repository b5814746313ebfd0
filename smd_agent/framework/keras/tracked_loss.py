"""The loss of single steps of a model, out of the running mean of it that Keras keeps.

That mean is a sum over the rows of all batches since it was last reset, and their number; what a step adds to both
tells the loss of its batch. To read them runs no part of the model, and waits for nothing where they are in main
memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from smd_agent.formats.series import ABSENT
from smd_agent.framework.keras.plain_access import attribute, is_of_keras
from smd_agent.framework.keras.scalar_variables import ScalarVariables
from smd_agent.framework.keras.types import Model

# After a batch that follows so many rows of the largest one the mean is not looked at before the next batch: if it had
# been reset, its number of rows would show. So many steps are looked at on both sides where that number is unexpected.
_MANY = 8
# A loss that the rounding of the sum may have changed by more than this part is not told.
_MOST_ROUNDING = 1e-2
# Steps after which a mean that has not counted any of them is looked at no more.
_LOOKED_AT = 3


class TrackedLoss:
    """One running mean.

    Args:
        total: the variable of the sum.
        count: the variable of the number of rows.
        library: whose variables they are.

    Attributes:
        variables: both.
        has_counted: a step has added something to it.
    """

    def __init__(self, total: Any, count: Any, library: ScalarVariables) -> None:
        self.variables = (total, count)
        self.has_counted = False
        self._read_total, self._read_both = library.reader([total]), library.reader([total, count])
        # The largest part of a number by which it is rounded.
        self._precision = library.rounding(total)
        self._total = self._count = 0.0
        # Rows of the largest batch, and steps that are to be looked at on both sides.
        self._largest = 0.0
        self._unexpected = _MANY
        self._is_sure = True

    def begin(self, follows: bool) -> None:
        """A step begins: whatever was reset, or counted otherwise, since the last one is passed over.

        Args:
            follows: it is the next one after the last that has ended here, over all modes and models.
        """
        self._is_sure = not follows or self._unexpected > 0 or self._count < _MANY * self._largest
        if not self._is_sure:
            return
        (total,) = self._read_total()
        if total != self._total or not total:
            self._total, self._count = self._read_both()

    def end(self, total: float, count: float) -> float:
        """The mean loss of the rows since the step began; ``ABSENT`` where it is not known.

        Args:
            total: the sum now.
            count: their number now.
        """
        before, rows = self._total, count - self._count
        self._total, self._count = total, count
        if self._is_sure:
            self._largest = max(self._largest, rows)
            self._unexpected -= self._unexpected > 0
        elif 0 < count <= self._largest:
            before, rows = 0.0, count
        elif not 0 < rows <= self._largest:
            self._unexpected = _MANY
            return ABSENT
        if rows <= 0 or not math.isfinite(before):
            return ABSENT
        self.has_counted = True
        if not math.isfinite(total):
            return total
        added = total - before
        is_rounded = count * self._precision > 1 or abs(total) * self._precision > abs(added) * _MOST_ROUNDING
        return ABSENT if is_rounded else added / rows


class Losses:
    """The losses of one model's steps.

    Args:
        model: has been compiled.
        library: that Keras computes with.
    """

    def __init__(self, model: Model, library: ScalarVariables) -> None:
        self._tracked = (*_tracked(model, library),)
        self._ended = 0
        self._find_variables()

    def _find_variables(self) -> None:
        self.variables = tuple(variable for one in self._tracked for variable in one.variables)

    def begin(self, follows: bool) -> None:
        """A step begins; see ``TrackedLoss``."""
        for one in self._tracked:
            one.begin(follows)

    def end(self, values: Sequence[float]) -> float:
        """The loss of the step that ends, by the values of ``variables``; ``ABSENT`` where it is not known."""
        tracked = self._tracked
        if len(tracked) == 1 and tracked[0].has_counted:
            return tracked[0].end(values[0], values[1])
        losses = [one.end(*values[2 * number : 2 * number + 2]) for number, one in enumerate(tracked)]
        return self._choose(losses)

    def _choose(self, losses: Sequence[float]) -> float:
        """The loss by the first that counts; the others are looked at no more."""
        self._ended += 1
        for one, loss in zip(self._tracked, losses, strict=True):
            if one.has_counted:
                self._tracked = (one,)
                self._find_variables()
                return loss
        if self._ended == _LOOKED_AT:
            self._tracked = ()
            self._find_variables()
        return ABSENT


def _tracked(model: Model, library: ScalarVariables) -> Iterator[TrackedLoss]:
    """The mean that Keras's own step counts, and those that a step of the program's may count as its loss."""
    compiled = attribute(model, "compiled_loss")
    of_keras_2 = [attribute(compiled, name) for name in ("_total_loss_mean", "_loss_metric")]
    means = [attribute(model, "_loss_tracker"), *of_keras_2]
    means += [one for one in attribute(model, "_metrics", ()) if attribute(one, "name") == "loss"]
    for mean in {id(one): one for one in means if one is not None}.values():
        if type(mean).__name__ != "Mean" or not is_of_keras(type(mean)):
            continue
        total, count = library.plain(attribute(mean, "total")), library.plain(attribute(mean, "count"))
        if total is not None and count is not None:
            yield TrackedLoss(total, count, library)
