"""Checks of index files: what stands in one may have been written by anybody, or damaged.

What is told as a wrong entry raises KeyError, TypeError or ValueError; of a file as a whole, IndexReaderException.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from smd_agent.core.json_fields import object_in
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import IndexReaderException
from smd_agent.formats.tfrecord import FRAME_BYTES
from smd_agent.printable import shortened

if TYPE_CHECKING:
    from array import array

CORRUPT = "Empty/Corrupt Index File"
_DTYPE = re.compile(r"\w{1,40}")
_LONGEST_PATH = 1000
LARGEST_FILE = 2**62
# A protobuf message may not reach 2 GiB.
LARGEST_RECORD = 2**31 + FRAME_BYTES


def name_in(entry: dict[str, Any], key: str = "tensorname") -> str:
    """Return the name of a tensor."""
    name = entry[key]
    if not isinstance(name, str):
        raise TypeError(name)
    return name


def _whole(number: Any, least: int = 0) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise ValueError(number)
    return number


def place_in(entry: dict[str, Any]) -> tuple[int, int]:
    """Return the first byte and the length of a tensor's record."""
    start, length = _whole(entry["start_idx"]), _whole(entry["length"], FRAME_BYTES)
    if start > LARGEST_FILE or length > LARGEST_RECORD:
        raise ValueError(entry)
    return start, length


def shape_in(entry: dict[str, Any]) -> tuple[str, tuple[int, ...], str]:
    """Return the original name of a tensor, its sizes, and its dtype, which is empty where it was not noted."""
    sizes, dtype = entry["shape"], entry.get("dtype")
    if not isinstance(sizes, list):
        raise TypeError(sizes)
    noted = dtype if isinstance(dtype, str) and is_dtype(dtype) else ""
    return name_in(entry, "originalname"), tuple(map(_whole, sizes)), noted


def fields_of(text: str) -> dict[str, Any]:
    """Return the object that an index file is."""
    fields = object_in(text)
    if fields is None:
        raise IndexReaderException(CORRUPT)
    return fields


def meta_of(fields: dict[str, Any]) -> tuple[ModeKeys, int, str | None]:
    """Return mode and number of the step, and the path of its event file, None if it has none."""
    meta = fields.get("meta")
    if meta is None:
        raise IndexReaderException("meta section is not present")
    if not meta:
        raise IndexReaderException("meta section is empty")
    try:
        mode, mode_step, event_file = (
            ModeKeys[meta["mode"].strip()],
            _whole(meta["mode_step"]),
            meta.get("event_file_name"),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise IndexReaderException("meta section does not name a mode and a step") from None
    if event_file is not None and not is_below(event_file):
        allowed = "allowed is the path of a file below the run's folder"
        raise IndexReaderException(f"event_file_name is {shortened(repr(event_file), 60)}, {allowed}")
    return mode, mode_step, event_file


def are_places(starts: array[int], lengths: array[int]) -> bool:
    """Return whether these may be the places of records."""
    return max(starts) <= LARGEST_FILE and min(lengths) >= FRAME_BYTES and max(lengths) <= LARGEST_RECORD


def is_dtype(text: str) -> bool:
    """True if this may be the name of a dtype."""
    return _DTYPE.fullmatch(text) is not None


def is_below(path: object) -> bool:
    """True if this is the path of a file below a run's folder."""
    if not isinstance(path, str) or len(path) > _LONGEST_PATH:
        return False
    if "\0" in path or {"", ".", ".."} & {*path.split("/")}:
        return False
    # A lone surrogate is none that a file system takes.
    return path.encode("utf-8", "replace").decode() == path
