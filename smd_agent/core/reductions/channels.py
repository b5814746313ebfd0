"""Shares of the channels of a layer's output that answer to nothing, or are held at an end of their range.

A channel is what has one index along the axis that the framework gives its units: a feature map of a convolution, a
unit of a dense layer. The other axes are those of the batch, of tokens, of places in an image.

===============  =================================================================
dead_share       channels of which every element is 0, of either sign, / channels
saturated_share  channels of which at least 99 of 100 elements are at an end of the range of tanh, -1 to 1, or of
                 sigmoid, 0 to 1, / channels
===============  =================================================================

An element x is at an end if ``|x| >= 1 - END``. Where no element of the output is below 0 and one is at that end, as
with sigmoid, it is so too if ``0 < x <= END``; the 0 of a ReLU or of a mask is no end. Where an element lies beyond 1
or -1 the output has none of these ranges, and no channel is saturated: so it is of linear layers, and of values that
are no floats. A sigmoid all of whose units are near 0 cannot be told from other small numbers, and counts none. A NaN
is neither 0 nor at an end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

DEAD, SATURATED = 1, 2
# A power of two, which every float type has.
END = 2.0**-10
# One element in so many may be elsewhere.
EXCEPTION = 100

# The part of a tensor that settles most channels.
_FIRST = 32

Array = npt.NDArray[Any]


def channel_counts(values: Array, axis: int, wanted: int, elsewhere: int) -> tuple[int, int]:
    """Numbers of dead and of saturated channels.

    Args: see ``Kernel.channel_counts``.
    """
    channels = np.moveaxis(values, axis, 0)
    with np.errstate(all="ignore"):
        dead = _dead(channels) if wanted & DEAD else 0
        return dead, _saturated(channels, elsewhere) if wanted & SATURATED else 0


def _dead(channels: Array) -> int:
    """Number of channels, which lie along the first axis, that have only zeros."""
    others = tuple(range(1, channels.ndim))
    doubtful = ~(_first_part(channels) != 0).any(others)
    if doubtful.any():
        doubtful[doubtful] = ~(_of(channels, doubtful) != 0).any(others)
    return int(np.count_nonzero(doubtful))


def _saturated(channels: Array, elsewhere: int) -> int:
    """Number of channels, which lie along the first axis, that are held at an end."""
    if channels.dtype.kind != "f":
        return 0
    first = _first_part(channels)
    if (np.abs(first) > 1).any():
        return 0
    size = channels[0].size
    high, low = _at_ends(first)
    doubtful = first[0].size - high - low <= elsewhere
    if not doubtful.any() or (np.abs(channels) > 1).any():
        return 0
    high, low = _at_ends(_of(channels, doubtful))
    is_sigmoid = low.any() and not (channels < 0).any() and (channels >= 1 - END).any()
    at_ends = high + low if is_sigmoid else high
    return int(np.count_nonzero(size - at_ends <= elsewhere))


def _at_ends(channels: Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Numbers of elements of each channel that have nearly the size of 1, and that are next to 0 and above it."""
    others = tuple(range(1, channels.ndim))
    high = np.count_nonzero(np.abs(channels) >= 1 - END, others)
    low = np.count_nonzero((channels > 0) & (channels <= END), others)
    return np.asarray(high), np.asarray(low)


def _first_part(channels: Array) -> Array:
    """The beginning of every channel."""
    axis = max(range(1, channels.ndim), key=channels.shape.__getitem__, default=0)
    if axis == 0:
        return channels
    length = -(-channels.shape[axis] // _FIRST)
    return channels[(slice(None),) * axis + (slice(length),)]


def _of(channels: Array, chosen: Array) -> Array:
    return channels if chosen.all() else channels[chosen]
