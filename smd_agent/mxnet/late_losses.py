"""Losses of which nobody waits for the engine: sums that it writes when it comes to them, taken once they are there.

MXNet tells of no array whether it has been computed, and to read one is to wait. So the engine writes a sum of the
elements into an array of ours, whose memory has held the bits of a NaN that no computation makes: as long as it does,
the sum is yet to come. It is one operation more for each backward pass. Where it fails, as when the program's own has
failed, the sum never comes, and the program hears of its failure when and where it would without us.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
from mxnet import autograd, context, ndarray
from mxnet.base import _LIB as LIBRARY
from mxnet.base import MXNetError, OpHandle, c_str, check_call
from mxnet.ndarray import NDArray
from mxnet.ndarray._internal import _imperative_invoke

from smd_agent.mxnet.arrays import bytes_of, plain

_CPU = 1


class _Kind(NamedTuple):
    """Numbers of one size.

    dtype: MXNet's name.
    number, bits: the same memory as a number and as an integer.
    unwritten: the bits of a NaN that no computation makes.
    """

    dtype: str
    number: Any
    bits: Any
    unwritten: int


_SINGLE = _Kind("float32", ctypes.c_float, ctypes.c_uint32, 0x7FC5_A5A5)
_DOUBLE = _Kind("float64", ctypes.c_double, ctypes.c_uint64, 0x7FF8_5A5A_A5A5_5A5A)
_KINDS = {np.float16: _SINGLE, np.float32: _SINGLE, np.float64: _DOUBLE}


class _Place:
    """An array of one element, and its memory."""

    __slots__ = ("_bits", "_number", "array", "kind")

    def __init__(self, kind: _Kind) -> None:
        self.kind = kind
        # On the CPU it gets its memory at once, and no operation writes it.
        self.array = ndarray.empty((1,), ctx=context.cpu(0), dtype=kind.dtype)
        address = ctypes.c_void_p()
        check_call(LIBRARY.MXNDArrayGetData(self.array.handle, ctypes.byref(address)))
        self._number = kind.number.from_address(address.value)
        self._bits = kind.bits.from_address(address.value)
        self._bits.value = kind.unwritten

    def take(self) -> float | None:
        """The number, if it has been written; then another one may be."""
        if self._bits.value == self.kind.unwritten:
            return None
        number: float = self._number.value
        self._bits.value = self.kind.unwritten
        return number


class Sum:
    """The sum of an array's elements.

    Attributes:
        count: of the elements.
        value: the sum; None as long as it is not known.
    """

    __slots__ = ("_place", "_places", "count", "value")

    def __init__(self, count: int, place: _Place, places: Sums) -> None:
        self.count = count
        self.value: float | None = None
        self._place: _Place | None = place
        self._places = places

    def is_known(self) -> bool:
        """True if it has been computed."""
        place = self._place
        if place is not None and (value := place.take()) is not None:
            self.value, self._place = value, None
            self._places.free(place)
        return self.value is not None

    def wait(self) -> None:
        """Wait until it has been computed; what has failed stays unknown."""
        if not self.is_known() and self._place is not None:
            try:
                bytes_of(self._place.array)
            except MXNetError:
                return
            self.is_known()


class Sums:
    """Asks for sums; the arrays in which they come are used again."""

    def __init__(self) -> None:
        self._free: dict[str, list[_Place]] = {}
        self._sum, self._cast, self._copy = map(_operation, ("sum", "Cast", "_copyto"))

    def of(self, array: NDArray) -> Sum | None:
        """The sum of an array, to be known later; None if it has none that is a loss."""
        array = plain(array)
        # NumPy's scalar type, or a dtype: arrays of mx.np have that.
        dtype = np.dtype(array.dtype).type
        kind, count = _KINDS.get(dtype), array.size
        if kind is None or not count:
            return None
        free = self._free.setdefault(kind.dtype, [])
        try:
            place = free.pop()
        except IndexError:
            # Not asked before: another thread may take the last one meanwhile.
            place = _Place(kind)
        is_narrow = dtype is np.float16
        if autograd.is_recording():
            with autograd.pause(train_mode=autograd.is_training()):
                self._ask(array, place, is_narrow)
        else:
            self._ask(array, place, is_narrow)
        return Sum(count, place, self)

    def free(self, place: _Place) -> None:
        """The number in it has been taken."""
        self._free[place.kind.dtype].append(place)

    def _ask(self, array: NDArray, place: _Place, is_narrow: bool) -> None:
        if is_narrow:
            array = _imperative_invoke(self._cast, (array,), ("dtype",), (place.kind.dtype,), None, False, False)
        where = array.context
        if where.device_typeid == _CPU and where.device_id == 0:
            _imperative_invoke(self._sum, (array,), (), (), place.array, False, False)
            return
        there = _imperative_invoke(self._sum, (array,), (), (), None, False, False)
        _imperative_invoke(self._copy, (there,), (), (), place.array, False, False)


def _operation(name: str) -> Any:
    """The handle of an operation; programs and AMP replace functions, never what these call."""
    handle = OpHandle()
    check_call(LIBRARY.NNGetOpHandle(c_str(name), ctypes.byref(handle)))
    return handle.value
