"""Many numbers of one step read at once, from records of one element as this package writes them.

What such records consist of is the same from step to step but for the step's number and time, the value and the
checksum. So it is worked out once; at later steps bytes are compared and values taken for all records together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from smd_agent.errors import SMDebugTypeError
from smd_agent.formats.encoder import CHECKSUM_KEY, TAIL_BYTES, record_end
from smd_agent.formats.event import Form, peek_form
from smd_agent.formats.tfrecord import FOOTER, FOOTER_BYTES, FRAME_HEADER_BYTES, frame_header

Numbers = tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]
"""Numbers, and which of them are known."""

_KINDS = "fiub"


class ScalarColumn:
    """The records of some names, each of one length.

    Args:
        names: under which the numbers are stored.
        lengths: of the framed records, in bytes.
        data: bytes of a step, by which dtypes and shapes are known.
        starts: first byte of each record in them.
    """

    def __init__(
        self,
        names: Sequence[str],
        lengths: npt.NDArray[np.int64],
        data: bytes,
        starts: npt.NDArray[np.int64],
    ) -> None:
        self._fits = np.zeros(len(names), bool)
        self._lengths = lengths
        by_dtype: dict[np.dtype[Any], list[int]] = {}
        places: list[npt.NDArray[np.int64]] = []
        expected: list[bytes] = []
        owners: list[int] = []
        for number, (name, start, length) in enumerate(zip(names, starts.tolist(), lengths.tolist(), strict=True)):
            form = peek_form(data[start + FRAME_HEADER_BYTES : start + length])
            dtype = _dtype_of(form)
            if form is None or dtype is None:
                continue
            end = record_end(name, dtype, form.shape)
            value_at = length - TAIL_BYTES - dtype.itemsize
            if value_at - len(end) < FRAME_HEADER_BYTES:
                continue
            self._fits[number] = True
            by_dtype.setdefault(dtype, []).append(number)
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
        self._numbers = [(dtype, np.array(found)) for dtype, found in by_dtype.items()]

    def values(self, data: bytes, starts: npt.NDArray[np.int64]) -> Numbers:
        """Return the numbers as float64, and which of them are known: are of one element, and not damaged.

        Args:
            data: bytes of a step.
            starts: first byte of each record in them.
        """
        values = np.zeros(len(starts))
        flat = np.frombuffer(data, np.uint8)
        ends = starts + self._lengths
        known = self._fits & (ends <= len(flat))
        if not known.all():
            return self._each(data, flat, starts, known)
        wrong = flat[starts[self._owners] + self._places] != self._expected
        if wrong.any():
            known[self._owners[wrong]] = False
        self._take(flat, ends, values)
        known &= _checksums(data, starts, ends) == _words(flat, ends - FOOTER_BYTES - 4, np.dtype("<u4"))
        return values, known

    def _each(
        self, data: bytes, flat: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], known: npt.NDArray[np.bool_]
    ) -> Numbers:
        """Do the same for those that can be known."""
        values = np.zeros(len(starts))
        own = np.flatnonzero(known)
        if not len(own):
            return values, known
        part = self._part(own)
        values[own], known[own] = part.values(data, starts[own])
        return values, known

    def _part(self, own: npt.NDArray[np.int64]) -> ScalarColumn:
        part = ScalarColumn.__new__(ScalarColumn)
        part._fits, part._lengths = self._fits[own], self._lengths[own]
        numbers = np.full(len(self._fits), -1)
        numbers[own] = np.arange(len(own))
        kept = numbers[self._owners] >= 0
        part._places, part._expected = self._places[kept], self._expected[kept]
        part._owners = numbers[self._owners[kept]]
        part._numbers = [
            (dtype, numbers[found][numbers[found] >= 0])
            for dtype, found in self._numbers
            if (numbers[found] >= 0).any()
        ]
        return part

    def _take(self, flat: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], values: npt.NDArray[np.float64]) -> None:
        for dtype, own in self._numbers:
            values[own] = _words(flat, ends[own] - TAIL_BYTES - dtype.itemsize, dtype)


def _words(flat: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    found = flat[starts[:, None] + np.arange(dtype.itemsize)]
    words: npt.NDArray[Any] = found.view(dtype).reshape(-1)
    return words


def _checksums(data: bytes, starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    view = memoryview(data)
    firsts, lasts = (starts + FRAME_HEADER_BYTES).tolist(), (ends - TAIL_BYTES).tolist()
    found = [crc32c(view[first:last]) for first, last in zip(firsts, lasts, strict=True)]
    return np.array(found, np.uint32)


def _dtype_of(form: Form | None) -> np.dtype[Any] | None:
    """Return how the one element of a record is stored; None if it has several, or is no number."""
    if form is None or any(size != 1 for size in form.shape):
        return None
    try:
        dtype = np.dtype(form.dtype).newbyteorder("<")
    except (TypeError, SMDebugTypeError):
        return None
    return dtype if dtype.kind in _KINDS else None
