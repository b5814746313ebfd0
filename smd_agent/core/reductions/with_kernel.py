"""The sums of many tensors in one call of the compiled kernel, where the installed package has one.

The wheel is built with ``kernel.c`` compiled beside this file where a C compiler is at hand, and without it elsewhere.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.reductions import histogram
from smd_agent.core.reductions.formulas import SUMMED, Need, Sums
from smd_agent.core.reductions.quantile import between

Array = npt.NDArray[Any]

LIBRARY = Path(__file__).with_name("kernel.so")

# Must be that of the kernel, whose file may be left over from another release.
_INTERFACE = 4
_KINDS = {
    np.dtype(name): number
    for number, name in enumerate(
        ("f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"),
    )
}
_COMPARED = (_KINDS[np.dtype(np.float32)], _KINDS[np.dtype(np.float64)])
_Row = ctypes.c_double * len(SUMMED)


class Kernel:
    """The compiled kernel.

    Raises:
        OSError: there is none, or it is not one for this machine or release.
    """

    def __init__(self, library: Path) -> None:
        loaded = ctypes.CDLL(str(library))
        if not hasattr(loaded, "smd_agent_interface") or loaded.smd_agent_interface() != _INTERFACE:
            raise OSError(f"{library} is not the kernel of this release")
        self._sum, self._sums = loaded.smd_agent_sum, loaded.smd_agent_sums
        self._sum.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p]
        self._sums.argtypes = [ctypes.c_int64, *3 * [ctypes.c_void_p], ctypes.c_int32, ctypes.c_void_p]
        self._sum.restype = self._sums.restype = None
        self._between = loaded.smd_agent_between
        limits = 2 * [ctypes.c_double]
        self._between.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, *limits, *2 * [ctypes.c_void_p]]
        self._between.restype = ctypes.c_int64
        self._count = loaded.smd_agent_count
        self._count.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p]
        self._count.restype = None
        self._channels = loaded.smd_agent_channels
        three = 3 * [ctypes.c_int64]
        numbers = [ctypes.c_int32, ctypes.c_int32, ctypes.c_int64]
        self._channels.argtypes = [ctypes.c_void_p, *three, *numbers, *4 * [ctypes.c_void_p]]
        self._channels.restype = None
        self._mixed = loaded.smd_agent_mixed
        self._mixed.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        self._mixed.restype = ctypes.c_int64

    def sum_one(self, values: Array, need: Need) -> Sums:
        """The sums of one 1-D array, as floats."""
        values = _known(values)
        out = _Row()
        self._sum(_address(values), values.size, _KINDS[values.dtype], _wanted(need), out)
        return Sums(*out)

    def sum_all(self, flat: Sequence[Array], need: Need) -> Sums:
        """The sums of several 1-D arrays, each field an array of shape ``(len(flat),)``."""
        known = [_known(values) for values in flat]
        addresses = np.array([_address(values) for values in known], np.uintp)
        sizes = np.array([values.size for values in known], np.int64)
        kinds = np.array([_KINDS[values.dtype] for values in known], np.int32)
        return self._all(addresses, sizes, kinds, need)

    def sum_rows(self, matrix: Array, need: Need) -> Sums:
        """The same for the rows of a matrix that lie one behind the other."""
        known = _known(matrix)
        count, size = known.shape
        addresses = _address(known) + np.arange(count, dtype=np.uintp) * np.uintp(size * known.itemsize)
        kinds = np.full(count, _KINDS[known.dtype], np.int32)
        return self._all(addresses, np.full(count, size, np.int64), kinds, need)

    def _all(
        self, addresses: npt.NDArray[Any], sizes: npt.NDArray[np.int64], kinds: npt.NDArray[np.int32], need: Need
    ) -> Sums:
        count = len(addresses)
        out = np.empty((count, len(SUMMED)))
        self._sums(count, _address(addresses), _address(sizes), _address(kinds), _wanted(need), _address(out))
        return Sums(*out.T)

    def between(self, values: Array, low: Any, high: Any) -> tuple[int, Array]:
        """The same as ``quantile.between``."""
        kind = _KINDS.get(values.dtype)
        if kind not in _COMPARED or not values.flags.c_contiguous or not values.flags.aligned:
            return between(values, low, high)
        below = ctypes.c_int64()
        # One element more than is found is written to.
        found = np.empty(values.size + 1, values.dtype)
        count = self._between(_address(values), values.size, kind, low, high, _address(found), ctypes.byref(below))
        return below.value, found[:count].copy()

    def counts(self, values: Array, fine: bool = False) -> npt.NDArray[np.int64]:
        """The same as ``histogram.counts``."""
        values = _known(values)
        found = np.empty(histogram.FINE_BUCKETS if fine else histogram.BUCKETS, np.int64)
        self._count(_address(values), values.size, _KINDS[values.dtype], fine, _address(found))
        return found

    def channel_counts(self, values: Array, axis: int, wanted: int, elsewhere: int) -> tuple[int, int] | None:
        """Numbers of dead and of saturated channels; None for values that the kernel does not read.

        Args:
            values: not empty.
            axis: along which the channels are, from 0.
            wanted: 1 for the dead, 2 for the saturated, 3 for both.
            elsewhere: so many elements of a saturated channel may be at no end.
        """
        kind = _KINDS.get(values.dtype)
        if kind not in _COMPARED or not values.flags.c_contiguous or not values.flags.aligned or values.size >= 1 << 31:
            return None
        channels = values.shape[axis]
        outer = math.prod(values.shape[:axis])
        inner = values.size // (outer * channels)
        scratch = np.empty(2 * channels, np.int64)
        left = _address(scratch)
        high = left + 8 * channels
        found = (ctypes.c_int64 * 2)()
        low = high + 4 * channels
        self._channels(_address(values), outer, channels, inner, kind, wanted, elsewhere, left, high, low, found)
        return found[0], found[1]

    def mixed_sum(self, words: npt.NDArray[np.int64]) -> int:
        """The same as ``mixed.mixed_sum``."""
        words = np.require(words, np.int64, ["C", "A"])
        found: int = self._mixed(_address(words), words.size)
        return found


def _address(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _wanted(need: Need) -> int:
    return need.spread + 2 * need.abs_spread + 4 * need.abs_low


def _known(values: Array) -> Array:
    """The array itself where the kernel reads it as it lies, else a copy; as float64 where it knows no such type."""
    known = values.dtype in _KINDS
    if known and values.flags.c_contiguous and values.flags.aligned:
        return values
    return np.array(values, values.dtype if known else np.float64, order="C")


def load() -> Kernel | None:
    """The kernel, where there is one that works here."""
    try:
        return Kernel(LIBRARY)
    except OSError:
        return None
