"""Copies large values into blocks: by a compiled function where the package was installed with it, else by NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Copy = Callable[[Bytes, Bytes], None]

LIBRARY = Path(__file__).with_name("copy.so")

# Must be that of the library, whose file may be left over from another release.
_INTERFACE = 1


def by_numpy(to: Bytes, source: Bytes) -> None:
    """Copy all of ``source`` to ``to``; both are contiguous and of one size."""
    to[:] = source


def compiled(library: Path) -> Copy:
    """The same, past the caches, which takes two thirds of the time where the values are larger than they are.

    Raises:
        OSError: there is no such function, or it is not one for this machine or release.
    """
    loaded = ctypes.CDLL(str(library))
    if not hasattr(loaded, "smd_agent_copy_interface") or loaded.smd_agent_copy_interface() != _INTERFACE:
        raise OSError(f"{library} is not of this release")
    function = loaded.smd_agent_copy
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    function.restype = None

    def copy(to: Bytes, source: Bytes) -> None:
        function(to.__array_interface__["data"][0], source.__array_interface__["data"][0], source.nbytes)

    return copy


def load() -> Copy:
    """The fastest copy that works here."""
    try:
        return compiled(LIBRARY)
    except OSError:
        return by_numpy


copy_large: Copy = load()
