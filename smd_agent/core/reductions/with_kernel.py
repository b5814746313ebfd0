"""The sums of many tensors in one call of the compiled kernel, where the installed package has one.

The wheel is built with ``kernel.c`` compiled beside this file where a C compiler is at hand, and without it elsewhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.reductions.sums import SUMMED, Need, Sums

LIBRARY = Path(__file__).with_name("kernel.so")

# Must be that of the kernel, whose file may be left over from another release.
_INTERFACE = 1
_KINDS = {
    np.dtype(name): number
    for number, name in enumerate(
        ("f4", "f8", "f2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"),
    )
}


class Kernel:
    """The compiled kernel.

    Raises:
        OSError: there is none, or it is not one for this machine or release.
    """

    def __init__(self, library: Path = LIBRARY) -> None:
        loaded = ctypes.CDLL(str(library))
        if not hasattr(loaded, "smd_agent_interface") or loaded.smd_agent_interface() != _INTERFACE:
            raise OSError(f"{library} is not the kernel of this release")
        self._sums = loaded.smd_agent_sums
        self._sums.restype = None

    def sum_one(self, values: npt.NDArray[Any], need: Need) -> Sums:
        """The sums of one 1-D array, as floats."""
        out = (ctypes.c_double * len(SUMMED))()
        self._run([values], need, out)
        return Sums(*out)

    def sum_all(self, flat: Sequence[npt.NDArray[Any]], need: Need) -> Sums:
        """The sums of several 1-D arrays, each field an array of shape ``(len(flat),)``."""
        out = np.empty((len(flat), len(SUMMED)))
        self._run(flat, need, out.ctypes.data_as(ctypes.c_void_p))
        return Sums(*out.T, product=np.ones(len(flat)))

    def _run(self, flat: Sequence[npt.NDArray[Any]], need: Need, out: Any) -> None:
        count = len(flat)
        known = [_known(values) for values in flat]
        self._sums(
            ctypes.c_int64(count),
            (ctypes.c_void_p * count)(*[values.__array_interface__["data"][0] for values in known]),
            (ctypes.c_int64 * count)(*[values.size for values in known]),
            (ctypes.c_int32 * count)(*[_KINDS[values.dtype] for values in known]),
            ctypes.c_int32(need.spread + 2 * need.abs_spread),
            out,
        )


def _known(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array itself where the kernel reads it as it lies, else as float64."""
    return values if values.dtype in _KINDS and values.flags.aligned else values.astype(np.float64)


def load() -> Kernel | None:
    """The kernel, where there is one that works here."""
    try:
        return Kernel()
    except OSError:
        return None
