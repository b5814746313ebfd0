"""Summaries for TensorBoard as bytes: scalars and histograms in the records of its event files.

A record is a TFRecord frame, whose footer is the payload's own checksum here, around one ``Event`` message::

    09 wall_time f64 | 10 step | 1A len file_version                     the first record of a file
    09 wall_time f64 | 10 step | 2A len { 0A len value, any number of times }
    value of a scalar:     0A len tag | 15 f32
    value of a histogram:  0A len tag | 2A len { 09 min | 11 max | 19 num | 21 sum | 29 sum of squares, all f64 |
                                                 32 len upper ends of the buckets f64 | 3A len their counts f64 }
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from smd_agent.core.distribution import Distribution
from smd_agent.formats.event_encoder import varint
from smd_agent.formats.tfrecord import frame_header, masked_crc

FILE_VERSION = b"brain.Event:2"

_UNFIT = re.compile(r"[^-/\w.]")


def tag_of(name: str) -> str:
    """A tensor's name as a tag: what TensorBoard takes for no name is ``_``, and a slash in front is left out."""
    return _UNFIT.sub("_", name).lstrip("/")


def file_head(wall_time: float) -> bytes:
    """The first record of a file, begun at so many seconds since the epoch."""
    return _record(_event(wall_time, 0) + _field(b"\x1a", FILE_VERSION))


def summary(wall_time: float, step: int, values: bytes) -> bytes:
    """A record of the values of a step; ``wall_time`` is in seconds since the epoch."""
    return _record(_event(wall_time, step) + _field(b"\x2a", values))


def scalar(tag: str, value: float) -> bytes:
    """One scalar, stored as float32."""
    return Scalars((tag,)).render(np.array([value]))


def histogram(tag: str, distribution: Distribution) -> bytes:
    """One histogram; the distribution must have finite elements."""
    ends, counts = distribution.buckets()
    fields = (distribution.low, distribution.high, distribution.size, distribution.total, distribution.squares)
    numbers = b"".join(
        bytes((key,)) + struct.pack("<d", number) for key, number in zip(range(0x09, 0x31, 8), fields, strict=True)
    )
    packed = _field(b"\x32", ends.astype("<f8").tobytes()) + _field(b"\x3a", counts.astype("<f8").tobytes())
    return _field(b"\x0a", _tag(tag) + _field(b"\x2a", numbers + packed))


class Scalars:
    """Scalars under tags that come again every time, as one run of bytes into which the values are put."""

    def __init__(self, tags: Sequence[str]) -> None:
        values = [_field(b"\x0a", _tag(tag) + b"\x15" + bytes(4)) for tag in tags]
        self._template = np.frombuffer(b"".join(values), np.uint8)
        ends = np.cumsum([len(value) for value in values], dtype=np.int64)
        self._places = ends[:, None] + np.arange(-4, 0)

    def render(self, values: npt.NDArray[np.float64]) -> bytes:
        """The values' bytes: one number for each tag, stored as float32."""
        out = self._template.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            out[self._places] = np.ascontiguousarray(values, "<f4").view(np.uint8).reshape(-1, 4)
        found: bytes = out.tobytes()
        return found


def _event(wall_time: float, step: int) -> bytes:
    return b"\x09" + struct.pack("<d", wall_time) + b"\x10" + varint(step)


def _tag(tag: str) -> bytes:
    return _field(b"\x0a", tag.encode(errors="replace"))


def _field(key: bytes, body: bytes) -> bytes:
    return key + varint(len(body)) + body


def _record(payload: bytes) -> bytes:
    return frame_header(len(payload)) + payload + struct.pack("<I", masked_crc(payload))
