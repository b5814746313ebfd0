"""Event records read: from the payload of a frame to the tensor in it.

A record of ours ends in field 100, the crc32c of everything before it, and is checked against it; records of
older writers have none. A value that was stored in a wider type than it had (bfloat16 as float32) says so in
its metadata.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugTypeError
from smd_agent.formats import messages
from smd_agent.formats.checksum import crc32c
from smd_agent.formats.dtypes import BFLOAT16, STRING, numpy_dtype
from smd_agent.formats.tfrecord import RecordError

Array = npt.NDArray[Any]

MODE_STEP = "mode_step"
MODE = "mode"
ORIGINAL_DTYPE = "dtype"

_CHECKSUM_KEY = messages.CHECKSUM_FIELD << 3 | 5
_CHECKSUM_KEY_BYTES = b"\xa5\x06"
_CHECKSUM_BYTES = 6
# Wire types of the fields an Event can have (0 varint, 1 eight bytes, 2 counted, 5 four bytes).
_COUNTED_FIELDS = (*range(3, 10), messages.FILLER_FIELD)
_WIRE_TYPES = {1: 1, 2: 0, messages.CHECKSUM_FIELD: 5, **dict.fromkeys(_COUNTED_FIELDS, 2)}
_CUT_OFF = "a field's length does not fit the record"
_MISFIT = "its values do not fill its shape"
_MOST_CHARACTERS = 1 << 29

# Type number -> field that holds the values when there is no tensor_content.
_VALUE_FIELDS = {
    **dict.fromkeys((3, 4, 5, 6, 11, 12, 13, 15, 16, 17), "int_val"),
    1: "float_val",
    2: "double_val",
    8: "scomplex_val",
    9: "int64_val",
    10: "bool_val",
    18: "dcomplex_val",
    19: "half_val",
    22: "uint32_val",
    23: "uint64_val",
}


@dataclass(frozen=True)
class SavedTensor:
    """One tensor of one step.

    ``step`` counts over all modes, ``wall_time`` is in seconds since the epoch, and ``dtype`` names the type
    the tensor had in the run, which differs from that of ``value`` where NumPy has no such type.
    """

    tag: str
    step: int
    mode: ModeKeys
    mode_step: int
    wall_time: float
    value: Array
    dtype: str


def decode_tensor(payload: bytes | memoryview) -> SavedTensor:
    """Read the first tensor of a record.

    Raises:
        RecordError: the bytes were changed, or hold no tensor.
        SMDebugTypeError: NumPy has no such type.
    """
    for tensor in decode_tensors(payload):
        return tensor
    raise RecordError("there is no tensor in the record")


def decode_tensors(payload: bytes | memoryview) -> Iterator[SavedTensor]:
    """Read all tensors of a record; records of other kinds (a graph, a version) have none.

    Raises:
        RecordError: the bytes were changed.
        SMDebugTypeError: NumPy has no such type.
    """
    check_payload(payload)
    event = messages.Event()
    try:
        event.ParseFromString(bytes(payload))
    except messages.DecodeError:
        raise RecordError("it is no event") from None
    for value in event.summary.value:
        if value.WhichOneof("value") in ("tensor", "simple_value"):
            yield _saved_tensor(event, value)


def _saved_tensor(event: Any, value: Any) -> SavedTensor:
    notes = {entry.plugin_name: entry.content for entry in value.metadata.plugin_data}
    try:
        mode = ModeKeys(int(notes.get(MODE, ModeKeys.GLOBAL.value)))
        mode_step = int(notes.get(MODE_STEP, event.step))
    except ValueError:
        raise RecordError("its mode is not a number of a mode") from None
    if value.WhichOneof("value") == "simple_value":
        array: Array = np.array([value.simple_value], np.float32)
    else:
        try:
            # Values of another type than the tensor's are no reason to warn: nobody can change the file.
            with np.errstate(all="ignore"):
                array = _array(value.tensor)
        except (RecordError, SMDebugTypeError):
            raise
        except (ValueError, TypeError, OverflowError):
            raise RecordError(_MISFIT) from None
    dtype = notes.get(ORIGINAL_DTYPE) or _dtype_name(value.tensor, array)
    return SavedTensor(value.tag, event.step, mode, mode_step, event.wall_time, array, dtype)


def _dtype_name(tensor: Any, array: Array) -> str:
    if tensor.dtype == BFLOAT16:
        return "bfloat16"
    return _name_of(array.dtype)


@lru_cache(64)
def _name_of(dtype: np.dtype[Any]) -> str:
    return "str" if dtype.kind == "U" else str(dtype.name)


@dataclass(frozen=True)
class Form:
    """The dtype's name and the shape of a saved tensor; as in `SavedTensor`, the dtype is that of the run."""

    dtype: str
    shape: tuple[int, ...]


def peek_form(head: bytes | memoryview) -> Form | None:
    """Read dtype and shape from the first bytes of a record's payload, unchecked; None if they are not among them."""
    for value in _messages(head, 5, 1):
        notes = {}
        for plugin in _messages(value, 9, 1):
            notes.update({bytes(name): bytes(text) for name in _messages(plugin, 1) for text in _messages(plugin, 2)})
        for tensor in _messages(value, 8):
            fields = list(_fields(tensor))
            number = next((field for key, field in fields if key == 1 and isinstance(field, int)), 0)
            dims = [dict(_fields(dim)).get(1, 0) for dim in _messages(tensor, 2, 2)]
            note = notes.get(ORIGINAL_DTYPE.encode(), b"").decode("utf-8", "replace")
            return Form(note or _type_name(number), tuple(size for size in dims if isinstance(size, int)))
    return None


def _type_name(number: int) -> str:
    if number in (0, STRING):
        return "str"
    return "bfloat16" if number == BFLOAT16 else str(numpy_dtype(number).name)


def _messages(head: bytes | memoryview, *numbers: int) -> Iterator[memoryview]:
    """Walk down a path of field numbers to all counted fields at its end."""
    for number, field in _fields(head):
        if number == numbers[0] and not isinstance(field, int):
            if len(numbers) == 1:
                yield field
            else:
                yield from _messages(field, *numbers[1:])


def _fields(head: bytes | memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Take a message apart as far as its bytes reach: (number, value) of varints and counted fields."""
    view, position, end = memoryview(head), 0, len(head)
    try:
        while position < end:
            key, position = _varint(view, position)
            kind = key & 7
            if kind == 2:
                size, position = _varint(view, position)
                yield key >> 3, view[position : position + size]
                position += size
            elif kind == 0:
                number, position = _varint(view, position)
                yield key >> 3, number
            else:
                position = _skip(view, position, kind)
    except RecordError:
        return


def check_payload(payload: bytes | memoryview) -> None:
    """Check an Event's bytes against the checksum among them, if there is one.

    The checksum is looked for field by field: its key may also occur by chance among a tensor's values, and a
    flipped bit in the key itself must not hide it.

    Raises:
        RecordError: the checksum is wrong, or a field stands there that no writer makes.
    """
    view = memoryview(payload)
    end = len(view) - _CHECKSUM_BYTES
    # Most records end in their checksum, and it is right: then no field need be looked at.
    if (
        end > 0
        and view[end : end + 2] == _CHECKSUM_KEY_BYTES
        and view[end + 2 :] == crc32c(view[:end]).to_bytes(4, "little")
    ):
        return
    position = 0
    while position < len(view):
        start = position
        key, position = _varint(view, position)
        wire_type = key & 7
        if _WIRE_TYPES.get(key >> 3) != wire_type:
            raise RecordError("it has a field that no event has")
        if key == _CHECKSUM_KEY:
            if len(view) - start != _CHECKSUM_BYTES:
                raise RecordError("its checksum is not at its end")
            if crc32c(view[:start]) != struct.unpack("<I", view[position:])[0]:
                raise RecordError("its bytes do not match their checksum")
            return
        position = _skip(view, position, wire_type)
    if position != len(view):
        raise RecordError(_CUT_OFF)


def _skip(view: memoryview, position: int, wire_type: int) -> int:
    if wire_type in (1, 5):
        return position + (8 if wire_type == 1 else 4)
    number, position = _varint(view, position)
    return position + number if wire_type == 2 else position


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    # Nearly all take one byte.
    if position < len(view) and (byte := view[position]) < 0x80:
        return byte, position + 1
    value = shift = 0
    for position in range(position, min(position + 10, len(view))):  # noqa: B020
        byte = view[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position + 1
        shift += 7
    raise RecordError(_CUT_OFF)


def _array(tensor: Any) -> Array:
    shape = tuple(dim.size for dim in tensor.tensor_shape.dim)
    if tensor.dtype == STRING or (tensor.dtype == 0 and tensor.string_val):
        texts = [text.decode("utf-8", "replace") for text in tensor.string_val]
        # Each takes as much memory as the longest.
        if len(texts) * max(map(len, texts), default=0) > _MOST_CHARACTERS:
            raise RecordError("its texts are too long for an array")
        return _shaped(np.array(texts, np.str_), shape)
    content = tensor.tensor_content
    dtype = np.dtype("<u2") if tensor.dtype == BFLOAT16 else numpy_dtype(tensor.dtype)
    if len(content) % dtype.itemsize:
        raise RecordError(_MISFIT)
    if tensor.dtype == BFLOAT16:
        halves = np.frombuffer(content, dtype) if content else _halves(tensor)
        return _shaped((halves.astype(np.uint32) << 16).view(np.float32), shape)
    if content:
        # The copy makes the array writable.
        values: Array = np.frombuffer(content, dtype).copy()
        return _shaped(values, shape)
    return _shaped(_listed(tensor, dtype), shape)


def _listed(tensor: Any, dtype: np.dtype[Any]) -> Array:
    field = _VALUE_FIELDS[tensor.dtype]
    if field == "half_val":
        return _halves(tensor).view(dtype)
    if dtype.kind == "c":
        parts = np.array(getattr(tensor, field), np.float64)
        values: Array = (parts[::2] + 1j * parts[1::2]).astype(dtype)
        return values
    listed: Array = np.array(getattr(tensor, field)).astype(dtype)
    return listed


def _halves(tensor: Any) -> npt.NDArray[np.uint16]:
    numbers = np.array(tensor.half_val, np.int64)
    if ((numbers < 0) | (numbers > 0xFFFF)).any():
        raise RecordError("its values have more than 16 bits")
    return numbers.astype(np.uint16)


def _shaped(values: Array, shape: tuple[int, ...]) -> Array:
    # Some old writers give no shape for a list of values.
    if shape == () and values.size != 1:
        return values
    if min(shape, default=0) < 0 or values.size != math.prod(shape):
        raise RecordError(_MISFIT)
    return values.reshape(shape)
