"""NumPy dtypes and their type numbers in event files (TensorFlow's ``DataType`` enumeration)."""

from __future__ import annotations

from typing import Any

import numpy as np

from smd_agent.errors import SMDebugTypeError

STRING = 7
BFLOAT16 = 14

_NUMBERS: dict[str, int] = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}
# Quantised types are read as the integers they are made of.
_QUANTISED = {11: "int8", 12: "uint8", 13: "int32", 15: "int16", 16: "uint16"}

# "<": the files are little-endian whatever the machine is.
_TO_NUMBER = {np.dtype(name).newbyteorder("<"): number for name, number in _NUMBERS.items()}
_TO_DTYPE = {number: dtype for dtype, number in _TO_NUMBER.items()} | {
    number: np.dtype(name).newbyteorder("<") for number, name in _QUANTISED.items()
}


def data_type(dtype: np.dtype[Any]) -> int:
    """Return the type number of a little-endian dtype.

    Raises:
        SMDebugTypeError: the format has no number for it.
    """
    number = _TO_NUMBER.get(dtype)
    if number is None:
        raise SMDebugTypeError(f"Numpy Datatype: {dtype} is currently not supported")
    return number


def numpy_dtype(number: int) -> np.dtype[Any]:
    """Return the little-endian dtype of a type number.

    Raises:
        SMDebugTypeError: no NumPy dtype goes with it.
    """
    dtype: np.dtype[Any] | None = _TO_DTYPE.get(number)
    if dtype is None:
        raise SMDebugTypeError(f"values of TensorFlow data type {number} cannot be read")
    return dtype
