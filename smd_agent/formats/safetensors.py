"""Files of tensors in the layout of safetensors, which that library and others read: bytes and names, and no code.

The length of a header in eight bytes, little-endian; the header, an object of JSON with the dtype, the shape and the
place of each tensor; then the elements of all of them, one tensor after the other, in the order of rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from smd_agent.core.json_fields import object_in

BYTES = {
    **{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1},
    **{"U16": 2, "U32": 4, "U64": 8, "C64": 8, "F8_E4M3": 1, "F8_E5M2": 1},
}
"""Size of an element of each dtype."""

_LENGTH = 8
_LARGEST_HEADER = 100 << 20
# The elements begin at a multiple of this, so that they can be mapped.
_ALIGNED = 8


class Placed(NamedTuple):
    """A tensor of a file: its dtype as the file names it, its shape, and where its bytes are in the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def header(tensors: Iterable[tuple[str, str, tuple[int, ...]]]) -> bytes:
    """Return what stands before the elements of tensors: names, dtypes and shapes, in the order of the elements."""
    entries: dict[str, object] = {}
    end = 0
    for name, dtype, shape in tensors:
        start, end = end, end + math.prod(shape) * BYTES[dtype]
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNED)
    return len(text).to_bytes(_LENGTH, "little") + text


def placed_in(content: bytes | memoryview) -> Mapping[str, Placed]:
    """Return the tensors of a file, by name.

    Raises:
        ValueError: it is no such file, or not whole.
    """
    size = int.from_bytes(content[:_LENGTH], "little")
    if len(content) < _LENGTH or size > min(len(content) - _LENGTH, _LARGEST_HEADER):
        raise ValueError("it is cut off, or no file of tensors")
    begin = _LENGTH + size
    found = object_in(bytes(content[_LENGTH:begin]))
    if found is None:
        raise ValueError("its header cannot be read")
    return {name: _placed(name, entry, begin, len(content)) for name, entry in found.items() if name != "__metadata__"}


def _placed(name: str, entry: object, begin: int, end: int) -> Placed:
    try:
        dtype, shape, (first, last) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]  # type: ignore[index]
        known = {type(number) for number in (*shape, first, last)} <= {int} and min((*shape, first), default=0) >= 0
        if known and math.prod(shape) * BYTES[dtype] == last - first and begin + last <= end:
            return Placed(dtype, shape, begin + first, begin + last)
    except (KeyError, TypeError, ValueError):
        pass
    raise ValueError(f"its tensor {name[:100]} cannot be read")
