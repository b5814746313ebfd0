"""A look at the weights when the program ends, after steps that were not saved: whether they are finite.

A loss that is NaN makes the gradients NaN, and the update the weights, all of those that are trained. So a few small
variables tell whether a training has broken since its last saved step. What their values are read from is kept until
the end, when the program may have let go of them. A step that is not saved has nothing to do with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np

from smd_agent.core.value_writing import Captured

K = TypeVar("K")

KEPT = 8
"""Variables that are kept of those that come together: the ones that are used last, near the loss."""
LARGEST = 1 << 14
"""Elements that one may have."""


class LastWeights(Generic[K]):
    """A few small variables of the last saved step.

    Args:
        value_of: gives the value that stands now in what is kept.
        to_array: gives that as an array.
    """

    def __init__(self, value_of: Callable[[K], Any], to_array: Callable[[Any], Captured | None]) -> None:
        self._value_of = value_of
        self._to_array = to_array
        self._step = -1
        self._kept: dict[str, K] = {}

    def keep(self, step: int, pairs: Iterable[tuple[str, K]]) -> None:
        """Take note of variables that a step saves, small ones, by name."""
        if step != self._step:
            self._step, self._kept = step, {}
        self._kept.update([*pairs][-KEPT:])

    def not_finite(self) -> Iterator[tuple[str, Any]]:
        """Yield those that are not finite now, with their values."""
        for name, kept in self._kept.items():
            value = self._value_of(kept)
            found = self._to_array(value)
            if found is not None and found[0].dtype.kind == "f" and not bool(np.isfinite(found[0]).all()):
                yield name, value
