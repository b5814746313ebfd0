"""The summaries saved beside or instead of a tensor: one definition for every framework, stored or computed on reading.

All of them are over the flattened tensor, accumulate in float64, let NaN and Inf through, and come out as float64:

=========  ==========================================================================
min, max   smallest, largest element
mean       sum / n
median     middle element, the mean of the two middle ones for even n
variance   sum((x - mean)**2) / n   (population, ddof 0)
std        sqrt(variance)
sum, prod  sum, product of the elements
l1, l2     sum(\\|x\\|), sqrt(sum(x**2))
=========  ==========================================================================

``abs_<op>`` is the same op on ``|x|``. Integers beyond 2**53 are rounded. Of a complex tensor only the norms and the
``abs_`` ops exist. An empty tensor has sum, l1 and l2 of 0, prod of 1 and NaN for the rest.

How it is done: tensors up to ``SMALL`` elements are converted to float64, laid end to end and reduced together. Larger
ones are read once, in pieces that stay in the processor's cache. A float32 piece is summed by BLAS in float32 runs of
``RUN`` elements whose results are added up in float64, and variances of the pieces are merged by Chan's formula (Chan,
Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979), so each sum is
within 1e-6 of sum(|terms|) of the float64 result. A piece whose squares would leave float32's range, or whose variance
would cancel, is done in float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

SMALL = 8192
PIECE = 81920
RUN = 512
NORMS = ("l1", "l2")

Array = npt.NDArray[Any]
Op = tuple[str, bool]

_BATCH = 131072
_FLOAT32_SAFE = (1e-15, 1e15)


@dataclass(frozen=True)
class _Need:
    """Which sums a set of ops is made of."""

    extremes: bool
    total: bool
    squares: bool
    spread: bool
    absolute: bool
    abs_spread: bool
    abs_min: bool
    product: bool

    @classmethod
    def of(cls, ops: Iterable[Op]) -> _Need:
        plain = {name for name, absolute in ops if not absolute}
        on_abs = {name for name, absolute in ops if absolute}
        spread = bool(plain & {"std", "variance"})
        abs_spread = bool(on_abs & {"std", "variance"})
        return cls(
            extremes=bool(plain & {"min", "max"} or "max" in on_abs),
            total=bool(plain & {"mean", "sum"}) or spread,
            squares="l2" in plain | on_abs,
            spread=spread,
            absolute="l1" in plain | on_abs or bool(on_abs & {"mean", "sum"}) or abs_spread,
            abs_spread=abs_spread,
            abs_min="min" in on_abs,
            product="prod" in plain | on_abs,
        )


# What one pass over a tensor leaves, and what a field holds when it was not needed.
_FIELDS = {
    "low": math.nan,
    "high": math.nan,
    "total": 0.0,
    "squares": 0.0,
    "spread": 0.0,
    "absolute": 0.0,
    "abs_spread": 0.0,
    "abs_low": math.nan,
    "product": 1.0,
}


@dataclass(slots=True)
class _Sums:
    """The fields of one tensor or piece of ``n`` elements."""

    n: int
    low: float = math.nan
    high: float = math.nan
    total: float = 0.0
    squares: float = 0.0
    spread: float = 0.0
    absolute: float = 0.0
    abs_spread: float = 0.0
    abs_low: float = math.nan
    product: float = 1.0


class _Columns:
    """The fields of many tensors, each as one float64 array."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.n = np.array(sizes, np.float64)
        self.fields = {name: np.full(len(sizes), value) for name, value in _FIELDS.items()}

    def put(self, i: int, sums: _Sums) -> None:
        """Enter one tensor."""
        for name, column in self.fields.items():
            column[i] = getattr(sums, name)

    def __getitem__(self, name: str) -> Array:
        return self.fields[name]


class _Workspace:
    """Scratch memory for one batch, so that no piece allocates."""

    def __init__(self) -> None:
        self.wide = np.empty(PIECE, np.float64)
        self.centred = np.empty(PIECE, np.float64)
        self.magnitudes = {np.dtype(t): np.empty(PIECE, t) for t in (np.float32, np.float64)}
        self.ones = {np.dtype(t): np.ones(RUN, t) for t in (np.float32, np.float64)}

    def sum(self, piece: Array) -> float:
        """Sum of a contiguous float32 or float64 piece: float32 runs, float64 over the runs."""
        ones = self.ones[piece.dtype]
        whole = piece.size // RUN * RUN
        total = 0.0
        if whole:
            total = float(np.add.reduce(np.dot(piece[:whole].reshape(-1, RUN), ones), dtype=np.float64))
        if whole < piece.size:
            total += float(np.dot(piece[whole:], ones[: piece.size - whole]))
        return total


def reducible(dtype: np.dtype[Any], ops: Iterable[Op]) -> bool:
    """Whether all these ops exist for values of this dtype."""
    return dtype.kind in "fiub" or (dtype.kind == "c" and all(absolute or name in NORMS for name, absolute in ops))


def reduce_one(array: Array, name: str, absolute: bool = False) -> float:
    """One reduction of one array.

    Raises:
        TypeError: the array's dtype has no such reduction (text, complex without ``abs``).
    """
    return float(reduce_batch([array], [(name, absolute)])[0, 0])


def reduce_batch(arrays: Sequence[Array], ops: Sequence[Op]) -> npt.NDArray[np.float64]:
    """Every op of every array.

    Args:
        arrays: real, integer, bool or complex arrays of any shape.
        ops: ``(name, absolute)`` pairs.

    Returns:
        float64 array of shape ``(len(arrays), len(ops))``.

    Raises:
        TypeError: a dtype has no such reduction.
    """
    need = _Need.of(ops)
    flat = [_flatten(array, ops) for array in arrays]
    columns = _Columns([values.size for values in flat])
    result = np.empty((len(arrays), len(ops)), np.float64)
    with np.errstate(all="ignore"):
        for group in _small_groups(flat):
            _sum_small(flat, group, need, columns)
        work: _Workspace | None = None
        for i, values in enumerate(flat):
            if values.size > SMALL:
                work = work or _Workspace()
                columns.put(i, _sum_large(values, need, work))
        for j, (name, absolute) in enumerate(ops):
            if name == "median":
                result[:, j] = [_median(values, absolute) for values in flat]
            else:
                result[:, j] = _values(columns, name, absolute)
    return result


def _flatten(array: Array, ops: Sequence[Op]) -> Array:
    if not reducible(array.dtype, ops):
        raise TypeError(f"not all of {', '.join(name for name, _ in ops)} exist for values of type {array.dtype}")
    if array.dtype.kind == "c":
        array = np.abs(array)
    if array.flags.c_contiguous:
        return array.reshape(-1)
    # The order of the elements does not matter here, so a dense array in another memory order is read in place.
    dense: Array = array.transpose(np.argsort([-abs(stride) for stride in array.strides], kind="stable"))
    return dense.reshape(-1)


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


def _sum_small(flat: Sequence[Array], group: list[int], need: _Need, columns: _Columns) -> None:
    sizes = np.array([flat[i].size for i in group])
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    x = np.concatenate([flat[i] for i in group], dtype=np.float64, casting="unsafe")
    if need.extremes:
        columns["low"][group] = np.minimum.reduceat(x, starts)
        columns["high"][group] = np.maximum.reduceat(x, starts)
    if need.total:
        totals = columns["total"][group] = np.add.reduceat(x, starts)
    if need.product:
        columns["product"][group] = np.multiply.reduceat(x, starts)
    if need.squares:
        columns["squares"][group] = np.add.reduceat(x * x, starts)
    if need.spread:
        columns["spread"][group] = _spread_small(x, totals, starts, sizes)
    if need.absolute or need.abs_min:
        np.absolute(x, out=x)
        totals = columns["absolute"][group] = np.add.reduceat(x, starts)
        columns["abs_low"][group] = np.minimum.reduceat(x, starts)
    if need.abs_spread:
        columns["abs_spread"][group] = _spread_small(x, totals, starts, sizes)


def _spread_small(x: Array, totals: Array, starts: Array, sizes: Array) -> Array:
    centred = x - np.repeat(totals / sizes, sizes)
    spread: Array = np.add.reduceat(centred * centred, starts)
    return spread


def _sum_large(values: Array, need: _Need, work: _Workspace) -> _Sums:
    pieces = -(-values.size // PIECE)
    length = min(PIECE, -(-values.size // (pieces * RUN)) * RUN)
    whole = _sum_piece(values[:length], need, work)
    for start in range(length, values.size, length):
        _merge(whole, _sum_piece(values[start : start + length], need, work))
    return whole


def _sum_piece(piece: Array, need: _Need, work: _Workspace) -> _Sums:
    sums = _Sums(piece.size)
    if piece.dtype not in work.ones:
        piece = _widened(piece, work)
    if need.extremes or piece.dtype == np.float32:
        sums.low, sums.high = float(np.minimum.reduce(piece)), float(np.maximum.reduce(piece))
        if piece.dtype == np.float32 and not _squares_fit_float32(max(-sums.low, sums.high)):
            piece = _widened(piece, work)
    if need.total:
        sums.total = work.sum(piece)
    if need.squares or need.spread or need.abs_spread:
        sums.squares = float(np.dot(piece, piece))
    if need.spread:
        sums.spread, sums.total = _spread(piece, sums.total, sums.squares, work)
    if need.product:
        sums.product = float(np.multiply.reduce(piece, dtype=np.float64))
    if need.absolute or need.abs_min:
        _add_magnitudes(piece, sums, need, work)
    return sums


def _add_magnitudes(piece: Array, sums: _Sums, need: _Need, work: _Workspace) -> None:
    magnitudes = work.magnitudes[piece.dtype][: piece.size]
    np.absolute(piece, out=magnitudes)
    sums.absolute = work.sum(magnitudes)
    if need.abs_min:
        sums.abs_low = float(np.minimum.reduce(magnitudes))
    if need.abs_spread:
        sums.abs_spread, sums.absolute = _spread(magnitudes, sums.absolute, sums.squares, work)


def _squares_fit_float32(size: float) -> bool:
    return _FLOAT32_SAFE[0] < size < _FLOAT32_SAFE[1] or size == 0.0


def _widened(piece: Array, work: _Workspace) -> Array:
    wide = work.wide[: piece.size]
    np.copyto(wide, piece, casting="unsafe")
    return wide


def _spread(piece: Array, total: float, squares: float, work: _Workspace) -> tuple[float, float]:
    """Sum of squared distances from the piece's mean, and the piece's sum (a better one where one was at hand)."""
    spread = squares - total * total / piece.size
    if spread >= 0.25 * squares or spread != spread:
        return spread, total
    centred = work.centred[: piece.size]
    np.subtract(piece, total / piece.size, out=centred, dtype=np.float64)
    rest = work.sum(centred)
    return float(np.dot(centred, centred)) - rest * rest / piece.size, total + rest


def _merge(whole: _Sums, part: _Sums) -> None:
    weight = whole.n * part.n / (whole.n + part.n)
    gap = part.total / part.n - whole.total / whole.n
    whole.spread += part.spread + weight * gap * gap
    gap = part.absolute / part.n - whole.absolute / whole.n
    whole.abs_spread += part.abs_spread + weight * gap * gap
    whole.n += part.n
    whole.low = _lower(whole.low, part.low)
    whole.high = -_lower(-whole.high, -part.high)
    whole.total += part.total
    whole.squares += part.squares
    whole.absolute += part.absolute
    whole.abs_low = _lower(whole.abs_low, part.abs_low)
    whole.product *= part.product


def _lower(a: float, b: float) -> float:
    # min() would keep or lose a NaN depending on its side; a NaN must stay.
    return a if a < b or a != a else b


def _values(columns: _Columns, name: str, absolute: bool) -> Array:
    """One op of every tensor, out of its sums."""
    total = columns["absolute"] if absolute else columns["total"]
    spread = columns["abs_spread"] if absolute else columns["spread"]
    if name == "min":
        return columns["abs_low"] if absolute else columns["low"]
    if name == "max":
        return np.maximum(np.abs(columns["low"]), np.abs(columns["high"])) if absolute else columns["high"]
    if name == "sum":
        return total
    if name == "prod":
        return np.abs(columns["product"]) if absolute else columns["product"]
    if name == "l1":
        return columns["absolute"]
    if name == "l2":
        return np.sqrt(columns["squares"])
    if name == "mean":
        return total / columns.n
    # Rounding can leave a spread just below zero; a NaN stays one.
    variance = np.maximum(spread, 0.0) / columns.n
    if name == "variance":
        return variance
    if name == "std":
        return np.sqrt(variance)
    raise TypeError(f"there is no reduction called {name!r}")


def _median(values: Array, absolute: bool) -> float:
    if values.size == 0:
        return math.nan
    if values.dtype.kind == "b":
        values = values.astype(np.uint8)
    magnitudes = np.abs(values.astype(np.float64)) if absolute else values
    # A float16 mean of two middle elements would round (or overflow); float32 inputs keep their size.
    if magnitudes.dtype == np.float16:
        magnitudes = magnitudes.astype(np.float32)
    n = magnitudes.size
    low, high = (n - 1) // 2, n // 2
    if magnitudes.dtype.kind == "f" and np.isnan(np.add.reduce(magnitudes)) and np.isnan(magnitudes).any():
        return math.nan
    parted = np.partition(magnitudes, [low, high])
    a, b = float(parted[low]), float(parted[high])
    return a if a == b else a / 2 + b / 2
