"""Files of the series: a header, and behind it one fixed row of numbers for each step of the training.

A file belongs to one worker and one table, and has the same columns from its first row to its last. All numbers are
little-endian.

======================  ====================================================================
bytes                   content
======================  ====================================================================
8                       ``SMDSERIE``
uint32                  version of the format: 1
uint32                  size of the header, which is where the first row begins
uint32                  size of the JSON text
uint32                  CRC-32 of the JSON text
so many                 the JSON text, an object; zeros up to the first row
======================  ====================================================================

The object has ``worker``, ``table``, ``columns`` (names of the numbers), ``number`` (``float64`` or ``float32``),
``start`` (the same in all files of one process) and ``after`` (the step that this start goes on after, -1 if it begins
the run: rows of earlier starts behind that step count no more).

======================  ====================================================================
bytes of a row          content
======================  ====================================================================
int64, int64            the step over all modes, and as its mode counts it
float64                 when the step ended, in seconds since the epoch
uint8, 5 bytes          the mode; zeros
uint16                  check: never 0, and the sum of all uint16 of the row is a multiple of 65535
one for each column     the numbers; where there is none the NaN 0x7ff8b5a4_00000000, or 0x7fc5ad20
======================  ====================================================================

What stands behind the last whole row was being written. A row whose check is wrong counts as none.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

MAGIC = b"SMDSERIE"
VERSION = 1
PREFIX = "series/"
"""The beginning of the names of all numbers."""

STEPS_TABLE = "steps"
PARAMETERS_TABLE = "parameters"
WIDE, NARROW = "float64", "float32"

_HEAD = struct.Struct("<8sIIII")
_ROW_HEAD = struct.Struct("<qqdB5xH")
_CHECKED = 65535
_CHECK_BEGINS, _CHECK_ENDS = 30, 32
_ALIGNED = 64
_LARGEST_HEADER = 1 << 28

ABSENT: float = struct.unpack("<d", bytes.fromhex("00000000a4b5f87f"))[0]
"""A NaN of its own, given in the place of a number that a row does not have; any other NaN is a number that is one."""

_ABSENT_WIDE = np.float64(ABSENT).view(np.uint64)
# Its upper bits are those of the wide one.
_ABSENT_NARROW = np.uint32(0x7FC5AD20)

PackRow = Callable[[int, int, float, int, Sequence[float]], bytes]
"""Makes a row of step, step in its mode, seconds, number of the mode, and the columns' numbers."""


class UnfitSeries(ValueError):
    """The bytes are not the beginning of a file of the series."""


class Header(NamedTuple):
    """The header of a file; see above."""

    worker: str
    table: str
    columns: tuple[str, ...]
    number: str = WIDE
    start: str = ""
    after: int = -1

    @property
    def row_bytes(self) -> int:
        """Size of a row."""
        return _ROW_HEAD.size + len(self.columns) * (8 if self.number == WIDE else 4)

    @property
    def row_type(self) -> np.dtype[Any]:
        """NumPy's type of a row; ``values`` are the columns' numbers."""
        values = "<f8" if self.number == WIDE else "<f4"
        head = [("step", "<i8"), ("mode_step", "<i8"), ("seconds", "<f8"), ("mode", "u1"), ("zeros", "V5")]
        return np.dtype([*head, ("check", "<u2"), ("values", values, (len(self.columns),))])

    def to_bytes(self) -> bytes:
        """The header as it stands in the file."""
        text = json.dumps(self._asdict()).encode("ascii")
        size = -(-(_HEAD.size + len(text)) // _ALIGNED) * _ALIGNED
        return (_HEAD.pack(MAGIC, VERSION, size, len(text), zlib.crc32(text)) + text).ljust(size, b"\0")


def header_size(data: bytes) -> int:
    """The size of a file's header, by its first bytes; 0 where these are too few.

    Raises:
        UnfitSeries: they are no header's, or one of another version.
    """
    if len(data) < _HEAD.size:
        return 0
    magic, version, size, text_bytes, _ = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise UnfitSeries("it is no file of the series")
    if version != VERSION:
        raise UnfitSeries(f"it has version {version} of the format, and this release knows {VERSION}")
    if not _HEAD.size + text_bytes <= size <= _LARGEST_HEADER:
        raise UnfitSeries("its header is damaged")
    return int(size)


def parse_header(data: bytes) -> Header:
    """The header in bytes that have all of it.

    Raises:
        UnfitSeries: it is damaged.
    """
    header_size(data)
    _, _, _, text_bytes, check = _HEAD.unpack_from(data)
    text = data[_HEAD.size : _HEAD.size + text_bytes]
    if zlib.crc32(text) != check:
        raise UnfitSeries("its header is damaged")
    try:
        found = json.loads(text)
        header = Header(**{**found, "columns": tuple(found["columns"])})
    except (ValueError, TypeError, KeyError, RecursionError):
        raise UnfitSeries("its header is damaged") from None
    if not all(isinstance(one, str) for one in (header.worker, header.table, header.start, *header.columns)):
        raise UnfitSeries("its header is damaged")
    if header.number not in (WIDE, NARROW) or type(header.after) is not int:
        raise UnfitSeries("its header is damaged")
    return header


def row_packer(header: Header) -> PackRow:
    """The function that makes rows of a file."""
    count = len(header.columns)
    return _packer_of_wide(count) if header.number == WIDE else _packer_of_narrow(count)


def _packer_of_wide(count: int) -> PackRow:
    pack = struct.Struct(f"{_ROW_HEAD.format}{count}d").pack

    # It runs in every step: a call more would be told by a clock.
    def row(step: int, mode_step: int, seconds: float, mode: int, values: Sequence[float]) -> bytes:
        row = pack(step, mode_step, seconds, mode, 0, *values)
        check = _CHECKED - int.from_bytes(row, "little") % _CHECKED
        return row[:_CHECK_BEGINS] + check.to_bytes(2, "little") + row[_CHECK_ENDS:]

    return row


def _packer_of_narrow(count: int) -> PackRow:
    def row(step: int, mode_step: int, seconds: float, mode: int, values: Sequence[float]) -> bytes:
        # What is larger than any float32 becomes infinite.
        with np.errstate(all="ignore"):
            numbers = np.asarray(values, np.float64).astype("<f4")
        if numbers.shape != (count,):
            raise ValueError(f"{numbers.shape} are not {count} numbers")
        row = _ROW_HEAD.pack(step, mode_step, seconds, mode, 0) + numbers.tobytes()
        check = _CHECKED - int.from_bytes(row, "little") % _CHECKED
        return row[:_CHECK_BEGINS] + check.to_bytes(2, "little") + row[_CHECK_ENDS:]

    return row


def rows_in(data: bytes, header: Header) -> tuple[npt.NDArray[Any], int]:
    """The rows in bytes of a file, from one that begins there on; what is not right is left out.

    Returns:
        The rows, and how many bytes there are up to the end of the last one.
    """
    whole = len(data) // header.row_bytes
    rows = np.frombuffer(data, header.row_type, whole)
    words = np.frombuffer(data, "<u2", whole * header.row_bytes // 2).reshape(whole, header.row_bytes // 2)
    right = (rows["check"] != 0) & (words.sum(axis=1, dtype=np.uint64) % _CHECKED == 0)
    if right.all():
        return rows, whole * header.row_bytes
    found = np.flatnonzero(right)
    return rows[found], (int(found[-1]) + 1) * header.row_bytes if found.size else 0


def is_there(numbers: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tells of each number of some rows whether it is one, and not ``ABSENT``."""
    is_narrow = numbers.dtype.itemsize == 4
    bits = numbers.view("<u4" if is_narrow else "<u8")
    found: npt.NDArray[np.bool_] = bits != (_ABSENT_NARROW if is_narrow else _ABSENT_WIDE)
    return found
