"""Event records as bytes, built by hand: no protobuf object and no copy of the tensor on the training thread.

A record is a TFRecord frame around one ``Event`` message::

    length u64 | masked crc of the length u32
    09 wall_time f64 | 10 step | AA 06 len zeros | 2A len {
        0A len { 4A len metadata | 0A len tag | 42 len { 08 dtype | 12 len shape | 22 len values } } }
    A5 06 crc32c of all Event bytes before this field, u32 (field 100, which older readers skip)
    constant footer u32

Field 101 is filler before a large tensor, so that its values begin at a multiple of ``ALIGNMENT``: copying them there
is a fifth faster. Older readers skip it like field 100.
Fields of one message may come in any order, so the values stand last and the head of a record can be written before
them and the tail behind them, wherever they lie.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from smd_agent.core.modes import ModeKeys
from smd_agent.formats.checksum import crc32c
from smd_agent.formats.dtypes import data_type
from smd_agent.formats.tfrecord import FOOTER, FRAME_HEADER_BYTES, frame_header

CHECKSUM_KEY = b"\xa5\x06"
FILLER_KEY = b"\xaa\x06"
ALIGNMENT = 64
CHECKSUM_BYTES = len(CHECKSUM_KEY) + 4
TAIL_BYTES = CHECKSUM_BYTES + len(FOOTER)
# A protobuf message may not reach 2 GiB; the rest of the record is far below a megabyte.
LARGEST_TENSOR_BYTES = 2**31 - 2**20

_CACHED_FORMS = 100_000
_UPCAST_NOTE = "dtype"


def varint(value: int) -> bytes:
    """Protobuf's base-128 encoding of a non-negative integer."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _utf8(text: str) -> bytes:
    """A text as bytes; half of a pair of code units, which is none, is spelled out."""
    return text.encode("utf-8", "backslashreplace")


def _delimited(key: bytes, body: bytes) -> bytes:
    return key + varint(len(body)) + body


def _plugin(name: str, content: str) -> bytes:
    return _delimited(b"\x0a", _delimited(b"\x0a", name.encode()) + _delimited(b"\x12", content.encode()))


@dataclass(frozen=True)
class Stamp:
    """The time and number of a step: what all of its records have in common.

    ``wall_time`` is in seconds since the epoch; ``step`` counts over all modes, ``mode_step`` within ``mode``.
    """

    step: int
    mode: ModeKeys
    mode_step: int
    wall_time: float
    prefix: bytes = field(init=False, repr=False)
    metadata: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prefix", b"\x09" + struct.pack("<d", self.wall_time) + b"\x10" + varint(self.step))
        plugins = _plugin("mode_step", str(self.mode_step)) + _plugin("mode", str(self.mode.value))
        object.__setattr__(self, "metadata", _delimited(b"\x4a", plugins))

    def metadata_with_note(self, original_dtype: str) -> bytes:
        """The metadata field of a tensor stored in a wider type than it had."""
        plugins = _plugin("mode_step", str(self.mode_step)) + _plugin("mode", str(self.mode.value))
        return _delimited(b"\x4a", plugins + _plugin(_UPCAST_NOTE, original_dtype))


class HeadEncoder:
    """Encodes what stands before a tensor's values; remembers the part that does not change from step to step."""

    def __init__(self) -> None:
        self._forms: dict[tuple[str, np.dtype[Any], tuple[int, ...]], tuple[bytes, bytes, int]] = {}

    def head(
        self,
        stamp: Stamp,
        tag: str,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        original_dtype: str | None = None,
        position: int | None = None,
    ) -> bytes:
        """Frame header and Event bytes up to the values; the tensor's ``nbytes`` values and a tail must follow.

        Given the ``position`` at which the record begins, the values begin at a multiple of ``ALIGNMENT``.

        Raises:
            SMDebugTypeError: the dtype has no place in the format.
        """
        tag_field, tensor_head, nbytes = self._form(tag, dtype, shape)
        metadata = stamp.metadata if original_dtype is None else stamp.metadata_with_note(original_dtype)
        tensor_field = b"\x42" + varint(len(tensor_head) + nbytes) + tensor_head
        value_length = len(metadata) + len(tag_field) + len(tensor_field) + nbytes
        value_key = b"\x0a" + varint(value_length)
        summary_key = b"\x2a" + varint(len(value_key) + value_length)
        head = b"".join((stamp.prefix, summary_key, value_key, metadata, tag_field, tensor_field))
        if position is not None:
            length = len(FILLER_KEY) + 1 + len(head)
            zeros = -(position + FRAME_HEADER_BYTES + length) % ALIGNMENT
            filler = FILLER_KEY + bytes((zeros,)) + bytes(zeros)
            head = head[: len(stamp.prefix)] + filler + head[len(stamp.prefix) :]
        return frame_header(len(head) + nbytes + CHECKSUM_BYTES) + head

    def _form(self, tag: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[bytes, bytes, int]:
        key = (tag, dtype, shape)
        form = self._forms.get(key)
        if form is None:
            nbytes = dtype.itemsize
            for size in shape:
                nbytes *= size
            dims = b"".join(_delimited(b"\x12", b"\x08" + varint(size)) for size in shape)
            tensor_head = b"\x08" + varint(data_type(dtype)) + _delimited(b"\x12", dims) + b"\x22" + varint(nbytes)
            if len(self._forms) >= _CACHED_FORMS:
                self._forms.clear()
            form = self._forms[key] = (_delimited(b"\x0a", _utf8(tag)), tensor_head, nbytes)
        return form

    def text(self, stamp: Stamp, tag: str, values: Sequence[str]) -> bytes:
        """A whole record of a 1-D array of text: no dtype, each value in ``string_val``."""
        shape = _delimited(b"\x12", _delimited(b"\x12", b"\x08" + varint(len(values))))
        tensor = shape + b"".join(_delimited(b"\x42", _utf8(value)) for value in values)
        value = stamp.metadata + _delimited(b"\x0a", _utf8(tag)) + _delimited(b"\x42", tensor)
        event = stamp.prefix + _delimited(b"\x2a", _delimited(b"\x0a", value))
        return frame_header(len(event) + CHECKSUM_BYTES) + event + tail(crc32c(event))


def tail(checksum: int) -> bytes:
    """The bytes behind a tensor's values."""
    return CHECKSUM_KEY + checksum.to_bytes(4, "little") + FOOTER


def scalar_end(tag: str) -> bytes:
    """The bytes before the eight of a float64 scalar's value, from the tag on."""
    return record_end(tag, np.dtype(np.float64), ())


def record_end(tag: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """The bytes before a tensor's values, from the tag on."""
    tag_field, tensor_head, nbytes = HeadEncoder()._form(tag, dtype, shape)
    return tag_field + b"\x42" + varint(len(tensor_head) + nbytes) + tensor_head


class ScalarBlock:
    """The float64 scalars of one step under names that come again every time, as one run of bytes.

    The bytes are built once; later steps only put their values, times and step numbers into the right places.
    """

    def __init__(self, tags: Sequence[str], stamp: Stamp) -> None:
        heads = HeadEncoder()
        dtype = np.dtype(np.float64)
        records = [heads.head(stamp, tag, dtype, ()) + bytes(8) + tail(0) for tag in tags]
        self.lengths = [len(record) for record in records]
        ends = np.cumsum(self.lengths, dtype=np.int64)
        starts = ends - np.array(self.lengths, np.int64)
        self._widths = self._widths_of(stamp)
        self._template = np.frombuffer(b"".join(records), np.uint8)
        events = starts + FRAME_HEADER_BYTES
        metadata = [record.index(stamp.metadata, FRAME_HEADER_BYTES) for record in records]
        self._prefix_at = _places(events, len(stamp.prefix))
        self._metadata_at = _places(starts + metadata, len(stamp.metadata))
        self._value_at = _places(ends - TAIL_BYTES - 8, 8)
        self._checksum_at = _places(ends - TAIL_BYTES + len(CHECKSUM_KEY), 4)
        self._checked = list(zip(events.tolist(), (ends - TAIL_BYTES).tolist(), strict=True))

    def fits(self, stamp: Stamp) -> bool:
        """True if a step's numbers have as many bytes as those the block was built with."""
        return self._widths == self._widths_of(stamp)

    @staticmethod
    def _widths_of(stamp: Stamp) -> tuple[int, int]:
        return len(stamp.prefix), len(stamp.metadata)

    def render(self, stamp: Stamp, values: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
        """The records' bytes for one step; ``values`` has one float64 for each tag."""
        out = self._template.copy()
        out[self._prefix_at] = np.frombuffer(stamp.prefix, np.uint8)
        out[self._metadata_at] = np.frombuffer(stamp.metadata, np.uint8)
        out[self._value_at] = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(-1, 8)
        view = memoryview(out)
        checksums = [crc32c(view[start:end]) for start, end in self._checked]
        out[self._checksum_at] = np.array(checksums, "<u4").view(np.uint8).reshape(-1, 4)
        return out  # type: ignore[no-any-return]


def _places(starts: npt.NDArray[np.int64], width: int) -> npt.NDArray[np.int64]:
    return starts[:, None] + np.arange(width)
