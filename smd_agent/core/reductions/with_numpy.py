"""The sums of many tensors with NumPy alone.

Tensors up to ``SMALL`` elements are converted to float64, laid end to end and reduced together. Larger ones are read
once, in pieces that stay in the processor's cache. A float32 piece is summed by BLAS in float32 runs of ``RUN``
elements whose results are added up in float64. Variances of pieces are merged by Chan's formula (Chan, Golub, LeVeque,
"Updating formulae and a pairwise algorithm for computing sample variances", 1979). A piece whose squares would leave
float32's range, or whose variance would cancel, is done in float64.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.reductions.formulas import NOTHING, Need, Sums

SMALL = 8192
PIECE = 131072
RUN = 512

Array = npt.NDArray[Any]

_BATCH = 131072
# NumPy 2 has BLAS multiply rows, which adds up in many lanes; before that it is done in four or so.
_SQUARES_RUN = 2048 if hasattr(np, "vecdot") else 256
_dot_rows: Callable[[Array, Array], Array] = getattr(np, "vecdot", functools.partial(np.einsum, "ij,ij->i"))
_FLOAT32_SAFE = (1e-15, 1e15)


def sum_one(values: Array, need: Need) -> Sums:
    """The sums of one tensor, as floats; see ``sum_all``."""
    if values.size == 0:
        return NOTHING
    if values.size > SMALL:
        with _workspace() as work:
            sums = _sum_large(values, need, work)
    else:
        sums = _sum_one_small(values.astype(np.float64, copy=False), need)
    return sums._replace(
        spread=max(sums.spread, 0.0),
        abs_spread=max(sums.abs_spread, 0.0),
        abs_high=max(abs(sums.low), abs(sums.high)),
    )


def sum_all(flat: Sequence[Array], need: Need) -> Sums:
    """The sums of several tensors, of which those that are not needed may be wrong.

    Args:
        flat: 1-D arrays, real.
        need: the sums that are needed; never the product.

    Returns:
        Each field an array of shape ``(len(flat),)``.
    """
    sizes = np.array([values.size for values in flat], np.float64)
    sums = Sums(*(np.full(len(flat), value) for value in NOTHING))
    sums.n[:] = np.where(sizes == 0, math.nan, sizes)
    for group in _small_groups(flat):
        _sum_small([flat[i] for i in group], group, need, sums)
    large = [i for i, values in enumerate(flat) if values.size > SMALL]
    if large:
        with _workspace() as work:
            for i in large:
                for column, value in zip(sums, _sum_large(flat[i], need, work), strict=True):
                    column[i] = value
    return _completed(sums)


def _completed(sums: Sums) -> Sums:
    # Rounding can leave a spread just below zero; a NaN stays one.
    return sums._replace(
        spread=np.maximum(sums.spread, 0.0),
        abs_spread=np.maximum(sums.abs_spread, 0.0),
        abs_high=np.maximum(np.abs(sums.low), np.abs(sums.high)),
    )


# Small tensors, one or many at once.


def _sum_one_small(x: Array, need: Need) -> Sums:
    low = high = abs_low = math.nan
    total = squares = spread = absolute = abs_spread = 0.0
    if need.extremes or need.specials:
        low, high = float(np.minimum.reduce(x)), float(np.maximum.reduce(x))
    zeros, nans, infs = _counts(x, low, high, need)
    if need.total:
        total = float(np.add.reduce(x))
    if need.squares:
        squares = float(np.add.reduce(x * x))
    if need.spread:
        spread = _spread_about(x, total / x.size)
    if need.absolute or need.abs_low:
        x = np.absolute(x)
        absolute, abs_low = float(np.add.reduce(x)), float(np.minimum.reduce(x))
    if need.abs_spread:
        abs_spread = _spread_about(x, absolute / x.size)
    sums = Sums(float(x.size), low, high, total, squares, spread, absolute, abs_spread, abs_low)
    return sums._replace(zeros=zeros, nans=nans, infs=infs)


def _counts(x: Array, low: float, high: float, need: Need) -> tuple[float, float, float]:
    """Numbers of zeros, NaN and Inf, the latter two with a look at the elements only where there are some."""
    zeros = float(x.size - np.count_nonzero(x)) if need.zeros else 0.0
    if not need.specials or (math.isfinite(low) and math.isfinite(high)):
        return zeros, 0.0, 0.0
    return zeros, float(np.count_nonzero(np.isnan(x))), float(np.count_nonzero(np.isinf(x)))


def _spread_about(x: Array, mean: float) -> float:
    centred = x - mean
    return float(np.add.reduce(centred * centred))


def _small_groups(flat: Sequence[Array]) -> list[list[int]]:
    groups: list[list[int]] = []
    filled = _BATCH
    for i, values in enumerate(flat):
        if 0 < values.size <= SMALL:
            if filled + values.size > _BATCH:
                groups.append([])
                filled = 0
            groups[-1].append(i)
            filled += values.size
    return groups


def _sum_small(flat: Sequence[Array], group: list[int], need: Need, sums: Sums) -> None:
    sizes = np.array([values.size for values in flat])
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    x = np.concatenate(flat, dtype=np.float64, casting="unsafe")
    if need.extremes or need.specials:
        sums.low[group] = np.minimum.reduceat(x, starts)
        sums.high[group] = np.maximum.reduceat(x, starts)
    if need.zeros:
        sums.zeros[group] = np.add.reduceat((x == 0.0).astype(np.float64), starts)
    if need.specials and not np.isfinite(sums.low[group] + sums.high[group]).all():
        sums.nans[group] = np.add.reduceat(np.isnan(x).astype(np.float64), starts)
        sums.infs[group] = np.add.reduceat(np.isinf(x).astype(np.float64), starts)
    if need.total:
        totals = sums.total[group] = np.add.reduceat(x, starts)
    if need.squares:
        sums.squares[group] = np.add.reduceat(x * x, starts)
    if need.spread:
        sums.spread[group] = _spread_small(x, totals, starts, sizes)
    if need.absolute or need.abs_low:
        np.absolute(x, out=x)
        totals = sums.absolute[group] = np.add.reduceat(x, starts)
        sums.abs_low[group] = np.minimum.reduceat(x, starts)
    if need.abs_spread:
        sums.abs_spread[group] = _spread_small(x, totals, starts, sizes)


def _spread_small(x: Array, totals: Array, starts: Array, sizes: Array) -> Array:
    centred = x - np.repeat(totals / sizes, sizes)
    spread: Array = np.add.reduceat(centred * centred, starts)
    return spread


# Large tensors, piece by piece.


class _Workspace:
    """Scratch memory, so that no piece allocates."""

    def __init__(self) -> None:
        self.wide = np.empty(PIECE, np.float64)
        self.centred = np.empty(PIECE, np.float64)
        self.magnitudes = {np.dtype(t): np.empty(PIECE, t) for t in (np.float32, np.float64)}
        self.ones = {np.dtype(t): np.ones(RUN, t) for t in (np.float32, np.float64)}

    def sum(self, piece: Array) -> float:
        """Sum of a contiguous float32 or float64 piece."""
        ones = self.ones[piece.dtype]
        rest = piece.size % RUN
        runs = piece[: piece.size - rest].reshape(-1, RUN)
        total = float(np.add.reduce(np.dot(runs, ones), dtype=np.float64))
        return total + float(np.dot(piece[-rest:], ones[:rest])) if rest else total


# Those that nobody uses; taking one and giving it back are atomic, so threads never share one.
_SPARE: list[_Workspace] = []


@contextlib.contextmanager
def _workspace() -> Iterator[_Workspace]:
    try:
        work = _SPARE.pop()
    except IndexError:
        work = _Workspace()
    yield work
    _SPARE.append(work)


def _sum_large(values: Array, need: Need, work: _Workspace) -> Sums:
    pieces = -(-values.size // PIECE)
    length = -(-values.size // (pieces * RUN)) * RUN
    whole = _sum_piece(values[:length], need, work)
    for start in range(length, values.size, length):
        whole = _merged(whole, _sum_piece(values[start : start + length], need, work))
    return whole


def _sum_piece(piece: Array, need: Need, work: _Workspace) -> Sums:
    low = high = abs_low = math.nan
    total = squares = spread = absolute = abs_spread = 0.0
    if piece.dtype not in work.ones:
        piece = _widened(piece, work)
    if need.extremes or need.specials or piece.dtype == np.float32:
        low, high = float(np.minimum.reduce(piece)), float(np.maximum.reduce(piece))
        if piece.dtype == np.float32 and not _squares_fit_float32(max(-low, high)):
            piece = _widened(piece, work)
    zeros, nans, infs = _counts(piece, low, high, need)
    if need.total:
        total = work.sum(piece)
    if need.squares:
        squares = _squares(piece)
    if need.spread:
        spread, total = _spread(piece, total, squares, work)
    if need.absolute or need.abs_low:
        magnitudes = work.magnitudes[piece.dtype][: piece.size]
        np.absolute(piece, out=magnitudes)
        absolute = work.sum(magnitudes)
        if need.abs_low:
            abs_low = float(np.minimum.reduce(magnitudes))
        if need.abs_spread:
            abs_spread, absolute = _spread(magnitudes, absolute, squares, work)
    sums = Sums(piece.size, low, high, total, squares, spread, absolute, abs_spread, abs_low)
    return sums._replace(zeros=zeros, nans=nans, infs=infs)


def _squares(piece: Array) -> float:
    """Sum of the squares of a piece."""
    if piece.dtype == np.float64:
        return float(np.dot(piece, piece))
    rest = piece.size % _SQUARES_RUN
    runs = piece[: piece.size - rest].reshape(-1, _SQUARES_RUN)
    total = float(np.add.reduce(_dot_rows(runs, runs), dtype=np.float64))
    return total + float(np.dot(piece[-rest:], piece[-rest:])) if rest else total


def _squares_fit_float32(size: float) -> bool:
    return _FLOAT32_SAFE[0] < size < _FLOAT32_SAFE[1] or size == 0.0


def _widened(piece: Array, work: _Workspace) -> Array:
    wide = work.wide[: piece.size]
    np.copyto(wide, piece, casting="unsafe")
    return wide


def _spread(piece: Array, total: float, squares: float, work: _Workspace) -> tuple[float, float]:
    """Sum of squared distances from the piece's mean, and the piece's sum (a better one where one was at hand)."""
    spread = squares - total * total / piece.size
    if spread >= 0.25 * squares or not math.isfinite(total):
        return spread, total
    centred = work.centred[: piece.size]
    np.subtract(piece, total / piece.size, out=centred, dtype=np.float64)
    rest = work.sum(centred)
    return float(np.dot(centred, centred)) - rest * rest / piece.size, total + rest


def _merged(a: Sums, b: Sums) -> Sums:
    weight = a.n * b.n / (a.n + b.n)
    gap = b.total / b.n - a.total / a.n
    abs_gap = b.absolute / b.n - a.absolute / a.n
    return Sums(
        a.n + b.n,
        _lower(a.low, b.low),
        -_lower(-a.high, -b.high),
        a.total + b.total,
        a.squares + b.squares,
        a.spread + b.spread + weight * gap * gap,
        a.absolute + b.absolute,
        a.abs_spread + b.abs_spread + weight * abs_gap * abs_gap,
        _lower(a.abs_low, b.abs_low),
        zeros=a.zeros + b.zeros,
        nans=a.nans + b.nans,
        infs=a.infs + b.infs,
    )


def _lower(a: float, b: float) -> float:
    # min() would keep or lose a NaN depending on its side; a NaN must stay.
    return a if a < b or a != a else b
