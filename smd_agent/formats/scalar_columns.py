"""Many numbers or small tensors of one step read at once, from records as this package writes them.

What such records consist of is the same from step to step but for the step's number and time, the values and the
checksum. So it is worked out once; at later steps bytes are compared and values taken for all records together.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.errors import SMDebugTypeError
from smd_agent.formats.checksum import crc32c
from smd_agent.formats.event_decoder import Form, peek_form
from smd_agent.formats.event_encoder import CHECKSUM_KEY, TAIL_BYTES, record_end, scalar_end
from smd_agent.formats.tfrecord import FOOTER, FOOTER_BYTES, FRAME_HEADER_BYTES, frame_header

Numbers = tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]
"""Numbers, and which of them are known."""

_KINDS = "fiub"

Rows = list[tuple[npt.NDArray[np.int64], npt.NDArray[Any]]]
"""The elements of tensors, flat: of those with the same dtype and size, which they are, and a row for each."""

LARGEST_ARRAY = 1 << 12
"""In bytes: tensors that are worth reading with others."""


class Column:
    """The records of small tensors of numbers, each under its name and of one length.

    Args:
        names: under which the tensors are stored.
        lengths: of the framed records, in bytes.
        data: bytes of a step, by which dtypes and shapes are known.
        starts: first byte of each record in them.
        scalars: leave out what has not one element.
    """

    def __init__(
        self,
        names: Sequence[str],
        lengths: npt.NDArray[np.int64],
        data: bytes,
        starts: npt.NDArray[np.int64],
        scalars: bool,
    ) -> None:
        self._fits = np.zeros(len(names), bool)
        self._lengths = lengths
        by_form: dict[tuple[np.dtype[Any], int], list[int]] = {}
        places: list[npt.NDArray[np.int64]] = []
        expected: list[bytes] = []
        owners: list[int] = []
        for number, (name, start, length) in enumerate(zip(names, starts.tolist(), lengths.tolist(), strict=True)):
            form = peek_form(data[start + FRAME_HEADER_BYTES : start + length])
            dtype = _dtype_of(form, scalars)
            if form is None or dtype is None:
                continue
            count = math.prod(form.shape)
            end = record_end(name, dtype, form.shape)
            value_at = length - TAIL_BYTES - count * dtype.itemsize
            if value_at - len(end) < FRAME_HEADER_BYTES:
                continue
            self._fits[number] = True
            by_form.setdefault((dtype, count), []).append(number)
            for at, text in (
                (0, frame_header(length - FRAME_HEADER_BYTES - FOOTER_BYTES)),
                (value_at - len(end), end),
                (length - TAIL_BYTES, CHECKSUM_KEY),
                (length - FOOTER_BYTES, FOOTER),
            ):
                places.append(np.arange(at, at + len(text)))
                expected.append(text)
                owners += [number] * len(text)
        self._places = np.concatenate(places) if places else np.zeros(0, np.int64)
        self._expected = np.frombuffer(b"".join(expected), np.uint8)
        self._owners = np.array(owners, np.int64)
        self._forms = [(dtype, count, np.array(found)) for (dtype, count), found in by_form.items()]

    def _known(self, data: bytes, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return which records are as expected, and not damaged."""
        flat = np.frombuffer(data, np.uint8)
        ends = starts + self._lengths
        known = self._fits & (ends <= len(flat))
        if not known.all():
            own = np.flatnonzero(known)
            if len(own):
                known[own] = self._part(own)._known(data, starts[own])
            return known
        wrong = flat[starts[self._owners] + self._places] != self._expected
        if wrong.any():
            known[self._owners[wrong]] = False
        known &= _checksums(data, starts, ends) == _words(flat, ends - FOOTER_BYTES - 4, 1, np.dtype("<u4"))[:, 0]
        return known

    def _part(self, own: npt.NDArray[np.int64]) -> Column:
        """Return the same for some of the records."""
        part = Column.__new__(Column)
        part._fits, part._lengths = self._fits[own], self._lengths[own]
        numbers = np.full(len(self._fits), -1)
        numbers[own] = np.arange(len(own))
        kept = numbers[self._owners] >= 0
        part._places, part._expected = self._places[kept], self._expected[kept]
        part._owners = numbers[self._owners[kept]]
        part._forms = []
        return part

    def rows(self, data: bytes, starts: npt.NDArray[np.int64]) -> Rows:
        """Return the elements of those that are as expected, and not damaged.

        Args:
            data: bytes of a step.
            starts: first byte of each record in them.
        """
        known = self._known(data, starts)
        flat = np.frombuffer(data, np.uint8)
        found = []
        for dtype, count, own in self._forms:
            own = own if known.all() else own[known[own]]
            ends = starts[own] + self._lengths[own] - TAIL_BYTES
            found.append((own, _words(flat, ends - count * dtype.itemsize, count, dtype)))
        return found

    def numbers(self, data: bytes, starts: npt.NDArray[np.int64]) -> Numbers:
        """Return the first element of each as float64, and of which it is known; the arguments are as above."""
        values, known = np.zeros(len(starts)), np.zeros(len(starts), bool)
        for own, words in self.rows(data, starts):
            values[own], known[own] = words[:, 0], True
        return values, known


def _words(
    flat: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], count: int, dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    """Return as many rows as there are starts, of ``count`` elements each."""
    found = flat[starts[:, None] + np.arange(count * dtype.itemsize)]
    words: npt.NDArray[Any] = found.view(dtype)
    return words


def _checksums(data: bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    view = memoryview(data)
    firsts, lasts = (starts + FRAME_HEADER_BYTES).tolist(), (ends - TAIL_BYTES).tolist()
    found = [crc32c(view[first:last]) for first, last in zip(firsts, lasts, strict=True)]
    return np.array(found, np.uint32)


def _dtype_of(form: Form | None, scalar: bool) -> np.dtype[Any] | None:
    """Return how the elements of a record are stored; None if they are no numbers, or not as many as are read."""
    if form is None or (scalar and any(size != 1 for size in form.shape)):
        return None
    try:
        dtype = np.dtype(form.dtype).newbyteorder("<")
    except (TypeError, SMDebugTypeError):
        return None
    fits = 0 < dtype.itemsize * math.prod(form.shape) <= LARGEST_ARRAY
    return dtype if dtype.kind in _KINDS and fits else None


_VALUE_BYTES = 8
_REMEMBERED = 1 << 16

_end_of = lru_cache(_REMEMBERED)(scalar_end)


def scalar_value(name: str, record: memoryview) -> float | None:
    """Return the number in a framed record; None if it is another kind of record, or its bytes were changed.

    Args:
        name: under which the number must have been stored.
        record: of any bytes.
    """
    event_end = len(record) - TAIL_BYTES
    value_at = event_end - _VALUE_BYTES
    end = _end_of(name)
    if (
        value_at - len(end) < FRAME_HEADER_BYTES
        or record[value_at - len(end) : value_at] != end
        or record[:FRAME_HEADER_BYTES] != frame_header(len(record) - FRAME_HEADER_BYTES - FOOTER_BYTES)
        or record[-FOOTER_BYTES:] != FOOTER
        or record[event_end : event_end + len(CHECKSUM_KEY)] != CHECKSUM_KEY
    ):
        return None
    value, checksum = struct.unpack_from(f"<d{len(CHECKSUM_KEY)}xI", record, value_at)
    return value if crc32c(record[FRAME_HEADER_BYTES:event_end]) == checksum else None
