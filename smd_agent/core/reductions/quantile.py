"""Medians and other quantiles without sorting.

A sample says between which two values one lies, and only what lies there is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Between = Callable[[Array, Any, Any], tuple[int, Array]]

# Below this many elements one partition is as fast.
DIRECT = 8192
PIECE = 65536
# A sample costs its size, and picking what lies between its bounds n over the root of that: 2 n^(2/3) is best.
_SAMPLE_SHARE, _SAMPLE_POWER = 2.0, 2 / 3
# Elements next to each other in a sample, and how many standard deviations of its rank are left on either side. Whole
# cache lines are read much faster; where neighbours resemble each other, which misleads, single elements get a try.
_SAMPLES = ((16, 2.5), (1, 6.0))


def between(values: Array, low: Any, high: Any) -> tuple[int, Array]:
    """Number of elements below ``low``, and those that lie neither there nor above ``high``."""
    is_below, is_above = np.empty(PIECE, np.bool_), np.empty(PIECE, np.bool_)
    below = 0
    found = []
    for start in range(0, values.size, PIECE):
        piece = values[start : start + PIECE]
        under, over = is_below[: piece.size], is_above[: piece.size]
        np.less(piece, low, out=under)
        np.greater(piece, high, out=over)
        below += int(np.count_nonzero(under))
        np.equal(under, over, out=under)
        found.append(piece.take(np.flatnonzero(under)))
    return below, np.concatenate(found)


def quantile(values: Array, share: float, absolute: bool, between: Between = between) -> float:
    """The element at a share of the way through the elements in order; NaN if there is a NaN or nothing at all.

    Where that is between two elements, the mean of both, weighted by nearness. A share of 0.5 is the median.

    Args:
        values: 1-D, real.
        share: from 0, the smallest element, to 1, the largest.
        absolute: of the absolute values instead.
        between: the function of this name, or another that does the same.
    """
    if values.size == 0:
        return math.nan
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    elif values.dtype == np.float16:
        # Neither the mean of two middle elements nor a comparison is at its best in float16.
        values = values.astype(np.float32)
    if absolute:
        # The absolute value of the smallest integer is no integer of its type.
        values = np.abs(values if values.dtype.kind == "f" else values.astype(np.float64))
    first, second, beyond = ranks_of(values.size, share)
    with np.errstate(all="ignore"):
        return weighted(*_at_ranks(values, first, second, between), beyond)


def ranks_of(size: int, share: float) -> tuple[int, int, float]:
    """The ranks of the elements next to a share of the way through so many, and how far beyond the first it is."""
    rank = share * (size - 1)
    first = int(rank)
    beyond = rank - first
    return first, first + (beyond > 0), beyond


def weighted(a: float, b: float, beyond: float) -> float:
    """The mean of two elements, weighted by nearness."""
    return a if a == b else a * (1 - beyond) + b * beyond


def _at_ranks(values: Array, first: int, second: int, between: Between) -> tuple[float, float]:
    """The elements at two ranks that are equal or next to each other; a NaN anywhere gives NaN."""
    if values.size > DIRECT:
        for run, certainty in _SAMPLES:
            low, high = _bounds(values, first, run, certainty)
            below, found = between(values, low, high)
            # A NaN counts as one of those between, of which there are many where many elements are equal.
            if below <= first and second < below + found.size:
                first, second = first - below, second - below
                narrowed = found.size <= values.size // 2
                return _at_ranks(found, first, second, between) if narrowed else _partitioned(found, first, second)
    return _partitioned(values, first, second)


def _bounds(values: Array, rank: int, run: int, certainty: float) -> tuple[Any, Any]:
    """Two elements between which the one at this rank probably lies."""
    runs = int(_SAMPLE_SHARE * values.size**_SAMPLE_POWER) // run
    distance = values.size // runs
    sample = values[: runs * distance].reshape(runs, distance)[:, :run].reshape(-1)
    middle, margin = rank * sample.size // values.size, int(certainty / 2 * sample.size**0.5) + 1
    ranks = [max(middle - margin, 0), min(middle + margin, sample.size - 1)]
    parted = np.partition(sample, ranks)
    return parted[ranks[0]], parted[ranks[1]]


def _partitioned(values: Array, first: int, second: int) -> tuple[float, float]:
    if values.dtype.kind == "f" and np.isnan(np.add.reduce(values)) and np.isnan(values).any():
        return math.nan, math.nan
    parted = np.partition(values, [first, second])
    return float(parted[first]), float(parted[second])
