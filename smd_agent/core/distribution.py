"""Distribution of a tensor: how its finite elements lie, in buckets that are narrow enough for a picture."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from smd_agent.core.names import Ops
from smd_agent.core.reductions import count_by_size, histogram, reduce_batch

SUMS = (("min", False), ("max", False), ("sum", False), ("l2", False))
"""What a distribution has beside its buckets, as reductions."""

Array = npt.NDArray[Any]


class Distribution(NamedTuple):
    """The distribution of the finite elements of a tensor.

    Attributes:
        low, high: the smallest and the largest of them; NaN if there is none.
        total, squares: the sums of x and of x².
        places: the buckets that are not empty, ascending, as ``reductions.histogram`` numbers them.
        counts: how many elements each of these has, int64.
        fine: whether they are those of a fine histogram.
        others: how many elements are not finite.
    """

    low: float
    high: float
    total: float
    squares: float
    places: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    fine: bool
    others: int

    @property
    def size(self) -> int:
        """Number of finite elements."""
        return int(self.counts.sum())

    def buckets(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The upper end of each bucket, ascending, and what is in it; together they leave no gap."""
        bounds = _bounds(self.fine)
        ends, counts = bounds[self.places], self.counts
        gaps = np.flatnonzero(np.diff(self.places) > 1) + 1
        ends = np.insert(ends, gaps, bounds[self.places[gaps] - 1])
        ends[-1:] = np.maximum(ends[-1:], self.high)
        return ends, np.insert(counts, gaps, 0)


def has_distribution(array: Array) -> bool:
    """True if an array has one: it has several elements, and they are real numbers."""
    return array.size > 1 and array.dtype.kind in "fiu"


def sums_in(ops: Ops, values: Sequence[float], size: int) -> list[float] | None:
    """The reductions ``SUMS`` of a tensor of so many elements, out of those of ``ops``; None where one is missing."""
    known = dict(zip(ops, values, strict=True))
    if ("mean", False) in known:
        known.setdefault(("sum", False), known["mean", False] * size)
    return [known[op] for op in SUMS] if known.keys() >= {*SUMS} else None


def distribution_of(array: Array, sums: Sequence[float] | None = None) -> Distribution:
    """The distribution of an array that has one; ``sums`` are its reductions ``SUMS``, if they are known."""
    if sums is None:
        sums = reduce_batch([array], SUMS)[0].tolist()
    counts = count_by_size(array, fine=True)
    if counts[0] or counts[-1] or counts[-2]:
        sums = reduce_batch([array[np.isfinite(array)]], SUMS)[0].tolist()
    return from_counts(counts, sums)


def from_counts(counts: npt.NDArray[np.int64], sums: Sequence[float] | None = None) -> Distribution:
    """A distribution out of a histogram, fine or not, and the reductions ``SUMS`` of the finite elements.

    Where these are not known, they are what they would be if each element were in the middle of its bucket, and the
    outermost ones at the outer ends of theirs.
    """
    fine = counts.size == histogram.FINE_BUCKETS
    places = np.flatnonzero(counts[1:-2]) + 1
    found = counts[places]
    others = int(counts[0] + counts[-2] + counts[-1])
    if sums is None:
        sums = _estimated(places, found, _bounds(fine))
    low, high, total, l2 = sums
    return Distribution(low, high, total, l2 * l2, places, found, fine, others)


def _estimated(places: Array, counts: Array, bounds: Array) -> tuple[float, float, float, float]:
    if not places.size:
        return float("nan"), float("nan"), 0.0, 0.0
    lower, upper = bounds[places - 1], bounds[places]
    middle = (lower + upper) / 2
    # What lies about zero is zero.
    zero = (lower < 0) & (upper > 0)
    low = 0.0 if zero[0] else float(lower[0])
    high = 0.0 if zero[-1] else float(upper[-1])
    return low, high, float(middle @ counts), float(np.sqrt(middle**2 @ counts))


@functools.lru_cache(maxsize=2)
def _bounds(fine: bool) -> npt.NDArray[np.float64]:
    """The ends of the finite buckets, ascending: the one at ``place`` goes from ``place - 1`` to ``place``."""
    sizes = histogram.sizes(fine)
    return np.concatenate([-sizes[::-1], sizes])
