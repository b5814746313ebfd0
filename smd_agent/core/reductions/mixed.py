"""The sum of words that are each mixed with their place, which tells arrays apart.

The constants are those of MurmurHash3's finalizer, which spread each bit of a number over all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_FACTORS = (-49064778989728563, -4265267296055464877)
_SHIFT = 29
# What is computed stays in the cache of a processor, and in memory that the process has already.
_BLOCK = 4096


def mixed(words: Any, places: Any) -> Any:
    """Each word mixed with its place: int64 arrays of one dimension, of NumPy or of a framework."""
    found = (words + places) * _FACTORS[0]
    return (found ^ (found >> _SHIFT)) * _FACTORS[1]


def mixed_sum(words: npt.NDArray[np.int64]) -> int:
    """The sum of the mixed words of one dimension, modulo 2**64, as an int64; places count from 1."""
    total = np.int64(0)
    with np.errstate(over="ignore"):
        for start in range(0, len(words), _BLOCK):
            part = words[start : start + _BLOCK]
            total += mixed(part, np.arange(start + 1, start + 1 + len(part), dtype=np.int64)).sum()
    return int(total)
