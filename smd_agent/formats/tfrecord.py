"""The frame around each record of an event file (TensorFlow's TFRecord).

A record is: length u64, masked crc32c of those eight bytes u32, payload, footer u32, all little-endian. Event
files carry a constant as footer, because older readers insist on it; files made for TensorBoard carry the
payload's crc.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from smd_agent.formats.checksum import crc32c

FRAME_HEADER_BYTES = 12
FOOTER_BYTES = 4
FRAME_BYTES = FRAME_HEADER_BYTES + FOOTER_BYTES


class RecordError(ValueError):
    """The bytes of a record are not those that were written; the text says what is wrong with them."""


def masked_crc(data: bytes | memoryview) -> int:
    """Return the crc32c of ``data`` as TFRecord masks it: rotated right by 15 bits, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


# These ten characters are what the first writers of the format put through the crc instead of the payload.
FOOTER = struct.pack("<I", masked_crc(b"0x12345678"))


@lru_cache(maxsize=4096)
def frame_header(length: int) -> bytes:
    """Return the twelve bytes before a payload of ``length`` bytes."""
    size = struct.pack("<Q", length)
    return size + struct.pack("<I", masked_crc(size))


def payload_length(header: bytes | memoryview) -> int:
    """Return the payload's length in bytes from a frame's first twelve bytes.

    Raises:
        RecordError: they are cut off or changed.
    """
    if len(header) < FRAME_HEADER_BYTES:
        raise RecordError("the file ends inside a record")
    size, crc = struct.unpack("<QI", header[:FRAME_HEADER_BYTES])
    if masked_crc(bytes(header[:8])) != crc:
        raise RecordError("the record's length does not match its checksum")
    return int(size)


def check_footer(payload: bytes | memoryview, footer: bytes | memoryview) -> None:
    """Accept the constant footer or the payload's own masked crc.

    Raises:
        RecordError: it is neither.
    """
    if len(footer) < FOOTER_BYTES:
        raise RecordError("the file ends inside a record")
    if footer != FOOTER and struct.unpack("<I", footer)[0] != masked_crc(payload):
        raise RecordError("the record's end mark is wrong")


def read_record(buffer: bytes | memoryview, offset: int = 0) -> memoryview:
    """Return the payload of the record that begins at ``offset``, as a view.

    Raises:
        RecordError: the frame is cut off or changed.
    """
    view = memoryview(buffer)
    start = offset + FRAME_HEADER_BYTES
    end = start + payload_length(view[offset:start])
    payload = view[start:end]
    check_footer(payload, view[end : end + FOOTER_BYTES])
    return payload
