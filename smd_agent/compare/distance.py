"""The distance of two values of a tensor: element by element, or by the statistics that both have.

Bits that are the same are the same values, as are NaN and NaN. Else the distance is relative to the size of the tensor:
the largest of |a - b|₂ / |a|₂ and max |a - b| / max |a|, with the larger one of both below the line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.reduction_config import CHANNEL_SHARES
from smd_agent.printable import number_text, shape_text, shortened, shortened_within

Array = npt.NDArray[Any]

NOT_COMPARABLE = math.inf
"""The distance of what differs other than by a size: text, whole numbers, shapes, where NaN and Inf are."""

# What is computed from whole values agrees with what was stored up to this.
STATISTICS_AGREE = 1e-5

_NUMBERS = "fiubc"
_SHARES = ("zero_share", *CHANNEL_SHARES)
_NOT_FINITE = ("nan_count", "inf_count")
_EXTREMES = ("min", "max", "abs_min", "abs_max")
_PLAIN = ("mean", "std", "median", "p5", "p50", "p95")
_TYPICAL = (*_PLAIN, *(f"abs_{name}" for name in _PLAIN))
# A few elements on the other side of 0 are what rounding does.
_SHARE_BY_ROUNDING = 0.02
# In a text: the longest value, and what stands before the first difference.
_LONGEST_VALUE, _CONTEXT = 24, 8


@dataclass(frozen=True)
class Distance:
    """Two values that are not the same.

    Attributes:
        relative: their distance relative to the tensor's size; `NOT_COMPARABLE` if it has none.
        what: of which the two numbers are: ``value``, ``element (2, 5)``, ``shape``, ``text``, or a statistic's name.
        here: the number, or text, of the first run, where they are furthest apart.
        there: that of the second one.
        differing: number of elements that differ; None where only statistics are known.
        size: number of elements; None where it is not known.
        scale: what the distance is relative to: about the largest element; 0 where it is not known.
    """

    relative: float
    what: str
    here: float | str
    there: float | str
    differing: int | None = None
    size: int | None = None
    scale: float = 0.0

    def texts(self) -> tuple[str, str]:
        """Write both values, with as many digits as tell them apart."""
        if self.what == "text":
            return _from_first_difference(str(self.here), str(self.there))
        here, there = _value_text(self.here), _value_text(self.there)
        if here == there and not isinstance(self.here, str) and not isinstance(self.there, str):
            texts = ((f"{self.here:.{digits}g}", f"{self.there:.{digits}g}") for digits in (6, 9, 12, 17))
            return next((pair for pair in texts if pair[0] != pair[1]), (here, there))
        return here, there


def values_apart(here: Array, there: Array) -> Distance | None:
    """Compare two whole values; None if they are the same."""
    if here.dtype.kind not in _NUMBERS or there.dtype.kind not in _NUMBERS:
        same = here.shape == there.shape and np.array_equal(here, there)
        return None if same else _texts_apart(here, there)
    if here.size != there.size or (here.shape != there.shape and here.size != 1):
        return Distance(NOT_COMPARABLE, "shape", shape_text(here.shape), shape_text(there.shape))
    first, second = here.reshape(-1), there.reshape(-1)
    differ = np.flatnonzero(~((first == second) | ((first != first) & (second != second))))
    if not len(differ):
        return None
    if "f" in (here.dtype.kind, there.dtype.kind) or here.dtype.kind == "c" or there.dtype.kind == "c":
        relative, worst, scale = _relative(first, second, differ)
    else:
        relative, worst, scale = NOT_COMPARABLE, int(differ[0]), 0.0
    place = ", ".join(map(str, np.unravel_index(worst, here.shape))) if here.ndim else ""
    what = f"element ({place})" if here.size > 1 else "value"
    return Distance(relative, what, _number(first[worst]), _number(second[worst]), len(differ), first.size, scale)


def statistics_apart(
    here: Mapping[str, float], there: Mapping[str, float], size: int | None = None, agree: float = 0.0
) -> Distance | None:
    """Compare the statistics that both have, and return by which one they are furthest apart; None if all are the same.

    Args:
        here: of the first run, by name, those of absolute values as ``abs_mean``.
        there: of the second one.
        size: number of elements, where it is known.
        agree: relative distance up to which they are the same.
    """
    furthest: Distance | None = None
    for name in here:
        mine, its = here[name], there.get(name)
        if its is None or mine == its or (mine != mine and its != its):
            continue
        relative = _statistic_apart(name, mine, its, (here, there), size)
        if agree and relative <= agree:
            continue
        if furthest is None or relative > furthest.relative:
            furthest = Distance(relative, name, mine, its, None, size, _largest((here, there), (*_TYPICAL, *_EXTREMES)))
    return furthest


def counts_apart(here: Array, there: Array) -> Distance | None:
    """Compare two histograms: how many of the elements are counted elsewhere; None if none are."""
    if here.shape == there.shape and np.array_equal(here, there):
        return None
    total, other = int(here.sum()), int(there.sum())
    if here.shape != there.shape or total != other:
        return Distance(NOT_COMPARABLE, "size", float(total), float(other))
    # As floats: int64 differences of damaged counts may overflow.
    moved = float(np.abs(here.astype(np.float64) - there.astype(np.float64)).sum()) / 2
    worst = int(np.argmax(np.abs(here.astype(np.float64) - there.astype(np.float64))))
    relative = _beyond_rounding(moved / max(total, 1), total)
    return Distance(relative, f"histogram {worst}", float(here[worst]), float(there[worst]), None, total)


def _relative(first: Array, second: Array, differ: npt.NDArray[np.intp]) -> tuple[float, int, float]:
    kind = np.complex128 if "c" in (first.dtype.kind, second.dtype.kind) else np.float64
    mine, its = first.astype(kind), second.astype(kind)
    finite = np.isfinite(mine) & np.isfinite(its)
    if not finite[differ].all():
        return NOT_COMPARABLE, int(differ[~finite[differ]][0]), 0.0
    apart = np.abs(mine[differ] - its[differ])
    worst = int(differ[int(np.argmax(apart))])
    sizes = [np.abs(one[finite]) for one in (mine, its)]
    # Scaled, because squares of large numbers are not finite.
    largest = max(float(one.max()) for one in sizes)
    norm = max(float(np.linalg.norm(one / largest)) for one in sizes)
    relative = max(float(np.linalg.norm(apart / largest)) / norm, float(apart.max() / largest))
    return relative, worst, largest


def _statistic_apart(
    name: str, mine: float, its: float, both: tuple[Mapping[str, float], Mapping[str, float]], size: int | None
) -> float:
    if name in _NOT_FINITE or not (math.isfinite(mine) and math.isfinite(its)):
        return NOT_COMPARABLE
    if name in _SHARES:
        return _beyond_rounding(abs(mine - its), size)
    typical = _largest(both, _TYPICAL)
    if size:
        typical = max(typical, _largest(both, ("l2",)) / math.sqrt(size))
    scale = max(abs(mine), abs(its))
    if name in _EXTREMES:
        scale = max(scale, typical, _largest(both, ("min", "max")))
    elif name in _TYPICAL:
        scale = max(scale, typical or _largest(both, ("min", "max")))
    elif name in ("variance", "abs_variance"):
        scale = max(scale, typical**2)
    elif name in ("sum", "abs_sum"):
        scale = max(scale, typical * (size or 1))
    # Each side alone: the difference of two large numbers may not be finite.
    return abs(mine / scale - its / scale)


def _beyond_rounding(share: float, size: int | None) -> float:
    """Return a share of elements that differ; 0 where so few may do so by rounding."""
    return 0.0 if share <= max(_SHARE_BY_ROUNDING, 1.5 / size if size else 0.0) else share


def _largest(both: tuple[Mapping[str, float], Mapping[str, float]], names: tuple[str, ...]) -> float:
    found = (abs(one[name]) for one in both for name in names if name in one)
    return max((number for number in found if math.isfinite(number)), default=0.0)


def _texts_apart(here: Array, there: Array) -> Distance:
    first, second = (list(map(str, one.reshape(-1).tolist())) for one in (here, there))
    pairs = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
    mine, its = pairs[0] if pairs else (shape_text(here.shape), shape_text(there.shape))
    return Distance(NOT_COMPARABLE, "text" if pairs else "shape", mine, its)


def _number(value: Any) -> float | str:
    """Return a number as one of Python's; whole ones as text, which keeps 64 bits."""
    if isinstance(value, np.integer):
        return str(int(value))
    return str(complex(value)) if isinstance(value, np.complexfloating) else float(value)


def _from_first_difference(here: str, there: str) -> tuple[str, str]:
    """Cut off what two texts begin with alike, but for a few characters."""
    same = next((at for at, (mine, its) in enumerate(zip(here, there, strict=False)) if mine != its), 0)
    start = max(same - _CONTEXT, 0)
    return shortened(here[start:], _LONGEST_VALUE), shortened(there[start:], _LONGEST_VALUE)


def _value_text(value: float | str) -> str:
    return shortened_within(value, _LONGEST_VALUE) if isinstance(value, str) else number_text(value)
