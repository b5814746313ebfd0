"""Activity of a layer's units: seen in its values, or in statistics of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_HALVINGS = 50


def activity(active: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Return for each unit the percentage of its elements that are active.

    Args:
        active: which elements of a layer's values are. The units lie along the second axis, of three along the last
            one: (batch, units), (batch, tokens, units), (batch, units, height, width). Of one axis they are its own.

    Returns:
        float64 of shape ``(units,)``.
    """
    axis = {0: None, 1: 0, 3: 2}.get(active.ndim, 1)
    if axis is None:
        return np.array([100.0 * bool(active)])
    others = tuple(place for place in range(active.ndim) if place != axis)
    found: npt.NDArray[np.float64] = 100.0 * np.count_nonzero(active, others) / (active.size // active.shape[axis])
    return found


def dead_beyond_chance(dead: float, zeros: float, count: int) -> float:
    """Return which share of a layer's units is dead, where others are 0 throughout a small batch by chance.

    The units that live are taken to be 0 with the same probability p. So of dead ones d, ``zeros`` is d + (1 - d) p and
    ``dead`` is d + (1 - d) p**count, which is solved for d.

    Args:
        dead: share of units that are 0 throughout.
        zeros: share of elements that are 0.
        count: elements of each unit; with fewer than there are, the result is less.
    """
    if zeros >= 1:
        return 1.0
    # 1 + p + ... + p**(count - 1), which grows with p.
    wanted = (1 - dead) / (1 - zeros)
    if wanted >= count:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if (1 - middle**count) / (1 - middle) < wanted:
            low = middle
        else:
            high = middle
    return max(1 - (1 - zeros) / (1 - low), 0.0)
