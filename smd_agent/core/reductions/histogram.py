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

A fine histogram, which no file holds, is for pictures: each bucket between two powers of two is eight of equal width.
It is an int64 array of ``FINE_BUCKETS`` numbers in the same order.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

BUCKETS = 260
ZERO, NAN = 129, 259
# Bits of the fraction by which a fine histogram tells sizes apart.
FINE_BITS = 3
FINE_BUCKETS = (256 << FINE_BITS) + 4
PIECE = 65536

Array = npt.NDArray[Any]


class _Bits(NamedTuple):
    """The layout of a float: its bits as an integer, those of the fraction, the exponent field of 1, all of Inf."""

    integer: type[np.signedinteger[Any]]
    fraction: int
    one: int
    infinity: int


_BITS = {
    np.dtype(np.float32): _Bits(np.int32, 23, 127, 0x7F800000),
    np.dtype(np.float64): _Bits(np.int64, 52, 1023, 0x7FF0000000000000),
}
_NARROW = tuple(map(np.dtype, ("f2", "f4", "i1", "u1", "i2", "u2", "?")))


def counts(values: Array, fine: bool = False) -> npt.NDArray[np.int64]:
    """The histogram of a 1-D real array, or its fine one."""
    bits = FINE_BITS if fine else 0
    buckets = FINE_BUCKETS if fine else BUCKETS
    found = np.zeros(buckets, np.int64)
    wide = np.dtype(np.float32 if values.dtype in _NARROW else np.float64)
    for start in range(0, values.size, PIECE):
        piece = values[start : start + PIECE].astype(wide)
        found += np.bincount(_buckets(piece, _BITS[wide], bits), minlength=buckets)
    return found


@functools.lru_cache(maxsize=2)
def sizes(fine: bool = False) -> npt.NDArray[np.float64]:
    """The sizes from which on each positive bucket counts, ascending, and 2**64, up to which the last one does."""
    powers = 2.0 ** np.arange(-64, 64)
    parts = 1 + np.arange(1 << FINE_BITS) / (1 << FINE_BITS) if fine else np.ones(1)
    return np.append((powers[:, None] * parts).reshape(-1), 2.0**64)


def _buckets(piece: Array, layout: _Bits, fine: int) -> Array:
    """The index of each element's bucket; ``fine`` bits of the fraction count."""
    bits = piece.view(layout.integer)
    size = bits & np.iinfo(layout.integer).max
    lowest, zero = (layout.one - 64) << fine, (128 << fine) + 1
    place = np.clip(size >> (layout.fraction - fine), lowest, ((layout.one + 64) << fine) - 1) - lowest + 1
    place[size == 0] = 0
    place[size >= layout.infinity] = zero
    buckets = np.where(bits < 0, zero - place, zero + place)
    buckets[size > layout.infinity] = 2 * zero + 1
    found: Array = buckets
    return found
