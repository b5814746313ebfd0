"""Histogram of a tensor by sign and power of two: counts that can be added up over tensors, steps and workers.

It is an int64 array of ``BUCKETS`` numbers, in ascending order of what they count:

==============  ================================================================
index           counts the elements x with
==============  ================================================================
0               x = -Inf
1 to 128        -2**(e+1) < x <= -2**e, where e = 64 - index: 63 down to -64
129             x = 0, of either sign
130 to 257      2**e <= x < 2**(e+1), where e = index - 194: -64 up to 63
258             x = Inf
259             NaN
==============  ================================================================

Sizes from 2**64 on are counted with e = 63, and those below 2**-64 that are not 0 with e = -64. Integers beyond 2**53
are rounded to float64 first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

BUCKETS = 260
ZERO, NAN = 129, 259
PIECE = 65536

Array = npt.NDArray[Any]


class _Bits(NamedTuple):
    """How a float is laid out: its bits as an integer, those of the fraction, the exponent field of 1, all of Inf."""

    integer: type[np.signedinteger[Any]]
    fraction: int
    one: int
    infinity: int


_BITS = {
    np.dtype(np.float32): _Bits(np.int32, 23, 127, 0x7F800000),
    np.dtype(np.float64): _Bits(np.int64, 52, 1023, 0x7FF0000000000000),
}
_NARROW = tuple(map(np.dtype, ("f2", "f4", "i1", "u1", "i2", "u2", "?")))


def counts(values: Array) -> npt.NDArray[np.int64]:
    """The histogram of a 1-D real array."""
    found = np.zeros(BUCKETS, np.int64)
    wide = np.dtype(np.float32 if values.dtype in _NARROW else np.float64)
    for start in range(0, values.size, PIECE):
        piece = values[start : start + PIECE].astype(wide)
        found += np.bincount(_buckets(piece, _BITS[wide]), minlength=BUCKETS)
    return found


def _buckets(piece: Array, layout: _Bits) -> Array:
    """The index of each element's bucket."""
    bits = piece.view(layout.integer)
    size = bits & np.iinfo(layout.integer).max
    place = np.clip(size >> layout.fraction, layout.one - 64, layout.one + 63) - (layout.one - 65)
    place[size == 0] = 0
    place[size >= layout.infinity] = ZERO
    buckets = np.where(bits < 0, ZERO - place, ZERO + place)
    buckets[size > layout.infinity] = NAN
    found: Array = buckets
    return found
