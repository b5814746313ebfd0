"""Formulas of the reductions, and the few sums over a tensor that most are made of.

All of them are over the flattened tensor, accumulate in float64, and come out as float64. Those before the line let
NaN and Inf through, as NumPy does: one NaN makes them NaN.

==================  =================================================================
min, max            smallest, largest element
mean                sum / n
median              middle element, the mean of the two middle ones for even n
p5, p50, p95        element at 5, 50, 95 % of the way from the smallest to the largest in order; where that is
                    between two of them, their mean weighted by nearness (NumPy's percentiles); p50 is the median
variance            sum((x - mean)**2) / n   (population, ddof 0)
std                 sqrt(variance)
sum, prod           sum, product of the elements
l1, l2              sum(\\|x\\|), sqrt(sum(x**2))
------------------  -----------------------------------------------------------------
zero_share          elements that are 0, of either sign, / n
nan_count           number of elements that are NaN
inf_count           number of elements that are Inf or -Inf
==================  =================================================================

``abs_<op>`` is the same op on ``|x|``; the last three have none. Integers beyond 2**53 are rounded. Of a complex tensor
only the norms, the ``abs_`` ops and the last three exist, which are those of ``|x|``. An empty tensor has sum, l1, l2
and counts of 0, prod of 1 and NaN for the rest.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from smd_agent.core.names import Op, Ops


class Sums(NamedTuple):
    """The sums of one tensor (floats) or of many (float64 arrays of one length).

    Attributes:
        n: number of elements; NaN for an empty tensor, so that whatever is divided by it has no value.
        low: smallest element, NaN for an empty tensor, like ``high``, ``abs_low`` and ``abs_high``.
        high: largest element.
        total: sum of x.
        squares: sum of x².
        spread: sum of (x - mean)², never below 0.
        absolute: sum of \\|x\\|.
        abs_spread: sum of (\\|x\\| - mean of \\|x\\|)², never below 0.
        abs_low: smallest \\|x\\|.
        abs_high: largest \\|x\\|.
        zeros: number of elements that are 0.
        nans: number of elements that are NaN.
        infs: number of elements that are Inf or -Inf.
        product: product of x.
    """

    n: Any
    low: Any = math.nan
    high: Any = math.nan
    total: Any = 0.0
    squares: Any = 0.0
    spread: Any = 0.0
    absolute: Any = 0.0
    abs_spread: Any = 0.0
    abs_low: Any = math.nan
    abs_high: Any = math.nan
    zeros: Any = 0.0
    nans: Any = 0.0
    infs: Any = 0.0
    product: Any = 1.0


NOTHING = Sums(math.nan)

# The fields before ``product``, which no kernel computes.
SUMMED = Sums._fields[:-1]

# Operators only: they work on floats and on arrays.
FORMULAS: dict[Op, Callable[[Sums], Any]] = {
    ("min", False): lambda s: s.low,
    ("min", True): lambda s: s.abs_low,
    ("max", False): lambda s: s.high,
    ("max", True): lambda s: s.abs_high,
    ("sum", False): lambda s: s.total,
    ("sum", True): lambda s: s.absolute,
    ("mean", False): lambda s: s.total / s.n,
    ("mean", True): lambda s: s.absolute / s.n,
    ("variance", False): lambda s: s.spread / s.n,
    ("variance", True): lambda s: s.abs_spread / s.n,
    ("std", False): lambda s: (s.spread / s.n) ** 0.5,
    ("std", True): lambda s: (s.abs_spread / s.n) ** 0.5,
    ("l1", False): lambda s: s.absolute,
    ("l1", True): lambda s: s.absolute,
    ("l2", False): lambda s: s.squares**0.5,
    ("l2", True): lambda s: s.squares**0.5,
    ("prod", False): lambda s: s.product,
    ("prod", True): lambda s: abs(s.product),
    ("zero_share", False): lambda s: s.zeros / s.n,
    ("nan_count", False): lambda s: s.nans,
    ("inf_count", False): lambda s: s.infs,
}

COUNTED = ("zero_share", "nan_count", "inf_count")

# Elements at a share of the way from the smallest to the largest.
QUANTILES = {"median": 0.5, "p5": 0.05, "p50": 0.5, "p95": 0.95}


@dataclass(frozen=True)
class Need:
    """The sums that a set of ops is made of; the others may be left out."""

    anything: bool
    extremes: bool
    total: bool
    squares: bool
    spread: bool
    absolute: bool
    abs_spread: bool
    abs_low: bool
    product: bool
    zeros: bool
    specials: bool


@functools.lru_cache(maxsize=256)
def need_of(ops: Ops) -> Need:
    """The sums that these ops are made of."""
    plain = {name for name, absolute in ops if not absolute}
    on_abs = {name for name, absolute in ops if absolute}
    either = plain | on_abs
    spread = bool(plain & {"std", "variance"})
    abs_spread = bool(on_abs & {"std", "variance"})
    return Need(
        anything=bool(either - {*QUANTILES, "prod"}),
        extremes=bool(plain & {"min", "max"} or "max" in on_abs),
        total=bool(plain & {"mean", "sum"}) or spread,
        squares="l2" in either or spread or abs_spread,
        spread=spread,
        absolute="l1" in either or bool(on_abs & {"mean", "sum"}) or abs_spread,
        abs_spread=abs_spread,
        abs_low="min" in on_abs,
        product="prod" in either,
        zeros="zero_share" in either,
        specials=bool(either & {"nan_count", "inf_count"}),
    )
