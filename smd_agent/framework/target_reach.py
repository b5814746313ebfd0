"""Targets out of reach: whether an activation before a loss of numbers lets the prediction reach its target."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

# How far a target may be beyond an end of the range, beside rounding: a part of the end, or of 1.
_ROUNDING = 1e-3


class Range(NamedTuple):
    """The smallest and largest value that an activation can return; infinite where there is none."""

    least: float
    most: float


RANGES = {
    "sigmoid": Range(0.0, 1.0),
    "hardsigmoid": Range(0.0, 1.0),
    "softmax": Range(0.0, 1.0),
    "tanh": Range(-1.0, 1.0),
    "relu": Range(0.0, math.inf),
    "relu6": Range(0.0, 6.0),
    "softplus": Range(0.0, math.inf),
    "exp": Range(0.0, math.inf),
    "logsigmoid": Range(-math.inf, 0.0),
    "logsoftmax": Range(-math.inf, 0.0),
}
"""Ranges by what the frameworks' operations are called, in small letters."""


def ends(within: Range) -> dict[str, float]:
    """``reach_min``, ``reach_max``: the ends of a range, as far as it has them."""
    found = {"reach_min": within.least, "reach_max": within.most}
    return {name: end for name, end in found.items() if not math.isinf(end)}


def facts(within: Range, part: Any, share: Callable[[Any], Any]) -> dict[str, Any]:
    """Facts of a target that a prediction is compared with.

    Args:
        within: the range of the prediction.
        part: what is looked at of the target, float32, in one dimension and not empty.
        share: gives the share of what is true.

    Returns:
        The ends of the range; ``target_min``, ``target_max``; ``out_of_reach``: the share of targets outside of it.
    """
    low = within.least - _ROUNDING * max(abs(within.least), 1)
    high = within.most + _ROUNDING * max(abs(within.most), 1)
    found = {"target_min": part.min(), "target_max": part.max(), "out_of_reach": share((part < low) | (part > high))}
    return {**ends(within), **found}
