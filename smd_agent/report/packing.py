"""Numbers as small as a picture needs them: levels of one byte or two, deflated, as text.

====================  ======================================================
code                  of 8 bits, and in brackets of 16
====================  ======================================================
0                     there is no number
1                     exactly 0
2 to 253 (65533)      levels from the lowest number to the highest one
254 (65534)           Inf
255 (65535)           NaN
====================  ======================================================

So the larger code is always the worse one, and a picture with less room than numbers shows the largest of several.
"""

from __future__ import annotations

import base64
import math
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

ABSENT = -math.inf
"""What stands in a grid where there is no number; numbers are not negative."""

_FIRST = 2


def packed(grid: npt.NDArray[np.floating[Any]], is_share: bool, bits: int) -> dict[str, Any]:
    """Return a grid for JSON: ``low``, ``high``, ``log``, ``bits``, and ``data``, its codes deflated in base64.

    Args:
        grid: numbers from 0 up, Inf, NaN and `ABSENT`.
        is_share: whether levels go from 0 to 1 evenly; else they are those of the logarithm.
        bits: of a code, 8 or 16.
    """
    values = np.asarray(grid, np.float64)
    positive = values[np.isfinite(values) & (values > 0)]
    low, high = (0.0, 1.0) if is_share else (1.0, 1.0)
    if not is_share and positive.size:
        low, high = float(positive.min()), float(positive.max())
    codes = encoded(values, low, high, is_share, bits)
    data = deflated(codes.astype(codes.dtype.newbyteorder("<")).tobytes())
    return {"low": low, "high": high, "log": not is_share, "bits": bits, "data": data}


def deflated(content: bytes) -> str:
    """Return bytes deflated, with the header and the checksum of zlib, in base64."""
    return base64.b64encode(zlib.compress(content, 6)).decode()


def encoded(
    values: npt.NDArray[np.float64], low: float, high: float, is_share: bool, bits: int
) -> npt.NDArray[np.unsignedinteger[Any]]:
    """Return the codes of numbers; the module says what they are. Arguments are those of `packed`."""
    last = 2**bits - 3
    codes = np.zeros(values.shape, np.uint16 if bits == 16 else np.uint8)
    finite = np.isfinite(values)
    scaled = _scaled(values[finite], low, high, is_share)
    codes[finite] = np.where(values[finite] > 0, _FIRST + np.rint(scaled * (last - _FIRST)), 1)
    codes[values == np.inf] = last + 1
    codes[np.isnan(values)] = last + 2
    return codes


def _scaled(values: npt.NDArray[np.float64], low: float, high: float, is_share: bool) -> npt.NDArray[np.float64]:
    if is_share:
        return np.clip(values, 0.0, 1.0)
    if high <= low:
        return np.ones_like(values)
    logarithms = np.log(np.maximum(values, low))
    return np.clip((logarithms - math.log(low)) / (math.log(high) - math.log(low)), 0.0, 1.0)
