"""How often each unit of a layer is active, seen in the values of the layer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


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
    found: npt.NDArray[np.float64] = 100.0 * active.mean(others)
    return found
