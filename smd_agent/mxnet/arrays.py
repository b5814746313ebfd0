"""MXNet arrays as NumPy arrays: shared where that is possible, widened where NumPy has no such type.

Every read waits until the engine is idle, so it is done on saved steps only. Waiting for the array's own writers is not
enough: a convolution in inference brings the weights it *reads* into another layout, in place, when it happens to run.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
from mxnet import autograd, ndarray
from mxnet.base import _LIB as LIBRARY
from mxnet.base import MXNetError, NDArrayHandle, check_call
from mxnet.ndarray import NDArray
from mxnet.ndarray._internal import NDArrayBase
from mxnet.symbol import Symbol

from smd_agent.framework.nested_tensors import DEEPEST, nested
from smd_agent.framework.plain_access import bases_of, elements_of, is_a
from smd_agent.interpreter.hidden_frames import unseen

_SHARED_DTYPES = frozenset(
    np.dtype(name) for name in ("float16", "float32", "float64", "int8", "uint8", "int32", "int64")
)
_CPU = 1
_LISTS = (list, tuple)
# The documentation is built where MXNet is not.
_FRESH: Any = vars(NDArray).get("_fresh_grad")
_HANDLE: Any = vars(NDArrayBase).get("handle")

_pending_errors: list[MXNetError] = []


class OperationFailedError(MXNetError):  # type: ignore[misc]
    """A failure of an operation that what was to be saved depends on; ``raise_pending_error`` tells the program."""


class _Shared:
    """Hands a capsule of MXNet to ``numpy.from_dlpack``, which wants an object with these two methods."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, stream: Any = None) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU, 0


def plain(array: NDArray) -> NDArray:
    """The same array, or one of MXNet's own class with its memory if its class is the program's."""
    kind = type(array)
    if kind is NDArray:
        return array
    own = next(base for base in bases_of(kind) if base.__module__.partition(".")[0] == "mxnet")
    if own is kind:
        return array
    handle = NDArrayHandle()
    check_call(LIBRARY.MXShallowCopyNDArray(_HANDLE.__get__(array), ctypes.byref(handle)))
    return own(handle=handle, writable=False)


def to_array(array: NDArray) -> tuple[npt.NDArray[Any], str | None]:
    """The array's values, and the name of its dtype if they had to be widened.

    A dense array on the CPU shares its memory with the result, so that must be copied or reduced before the program
    goes on. Sparse arrays come out dense.
    """
    array = plain(array)
    _wait_until_idle()
    if array.stype != "default":
        # Making it dense is an operation, which must not become a part of the program's graph.
        with autograd.pause(train_mode=autograd.is_training()):
            return array.asnumpy(), None
    if array.context.device_type == "cpu" and array.size and array.dtype in _SHARED_DTYPES_AS_TYPES:
        try:
            return np.from_dlpack(_Shared(array.to_dlpack_for_read())), None
        except MXNetError:
            # In the processor's own blocked layout, as convolutions leave it; a copy is put in order.
            pass
    values = array.asnumpy()
    if values.dtype.names == ("bfloat16",):
        # MXNet's bfloat16 is a float32 without its lower half.
        wide = values.view(np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32), "bfloat16"
    return values, None


def fresh(array: NDArray) -> bool:
    """MXNet's own flag of an array whose gradient has not been applied."""
    found: bool = _FRESH.__get__(array)
    return found


def set_fresh(array: NDArray, value: bool) -> None:
    """Set that flag."""
    _FRESH.__set__(array, value)


def copied(array: NDArray) -> npt.NDArray[Any]:
    """The array's values as they are now, in memory of their own."""
    _wait_until_idle()
    return plain(array).asnumpy()  # type: ignore[no-any-return]


def bytes_of(array: NDArray) -> bytes:
    """The array's values as bytes; waits for its own writers alone, so it is for arrays that no operation reorders."""
    try:
        return bytes(plain(array).asnumpy().tobytes())
    except MXNetError as error:
        _pending_errors.append(error)
        raise OperationFailedError("an operation of the program has failed") from error


def _wait_until_idle() -> None:
    if _pending_errors:
        # MXNet tells of a failure once: what is read before the program hears of it has come of that, too.
        raise OperationFailedError("an operation of the program has failed") from _pending_errors[-1]
    try:
        ndarray.waitall()
    except MXNetError as error:
        _pending_errors.append(error)
        raise OperationFailedError("an operation of the program has failed") from error


@unseen
def raise_pending_error() -> None:
    """Hand the program the failure of an operation of its own that has come up while we waited.

    MXNet tells of it only once, at the next wait, and goes on afterwards as if nothing had been.

    Raises:
        MXNetError: there was such a failure.
    """
    if _pending_errors:
        error = _pending_errors[0]
        _pending_errors.clear()
        # Where we have waited is nothing to the program.
        raise error.with_traceback(None)


# ``NDArray.dtype`` is NumPy's scalar type, not a dtype.
_SHARED_DTYPES_AS_TYPES = frozenset(dtype.type for dtype in _SHARED_DTYPES)


def arrays_in(value: Any) -> list[NDArray]:
    """The arrays of a block's input or output, in order, out of lists, tuples and mappings."""
    return nested(value, NDArray)


def is_symbolic(args: tuple[Any, ...]) -> bool:
    """True if a block is being traced: called with symbols, which have no values."""
    first = args[0] if args else None
    if type(first) is NDArray:
        return False
    for _ in range(DEEPEST):
        if not is_a(first, _LISTS):
            break
        first = next(iter(elements_of(first)), None)
    return is_a(first, Symbol)
