"""Numbers read from records of scalars as this package writes them: a tenth of what reading any record takes.

Such a record ends in its tag, the head of a float64 scalar and the value, and all of it is under its checksum.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from smd_agent.formats.checksum import crc32c
from smd_agent.formats.encoder import CHECKSUM_KEY, TAIL_BYTES, scalar_end
from smd_agent.formats.tfrecord import FOOTER, FOOTER_BYTES, FRAME_HEADER_BYTES, frame_header

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
