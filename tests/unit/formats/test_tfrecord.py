import struct

import pytest
from crc32c import crc32c

from smd_agent.formats.tfrecord import FOOTER, RecordError, frame_header, masked_crc, read_record


def test_the_footer_is_the_constant_that_older_readers_expect():
    assert FOOTER.hex() == "b3c02d06"


def test_a_frame_header_is_the_length_and_its_masked_crc():
    size = struct.pack("<Q", 300)
    crc = crc32c(size)
    rotated = (crc >> 15 | crc << 17) & 0xFFFFFFFF
    assert frame_header(300) == size + struct.pack("<I", (rotated + 0xA282EAD8) & 0xFFFFFFFF)


@pytest.mark.parametrize("footer", [FOOTER, struct.pack("<I", masked_crc(b"payload"))], ids=["constant", "crc"])
def test_both_kinds_of_footer_are_accepted(footer):
    record = b"before" + frame_header(7) + b"payload" + footer + b"behind"
    assert bytes(read_record(record, 6)) == b"payload"


@pytest.mark.parametrize(
    "record",
    [
        frame_header(7) + b"payload" + b"\0\0\0\0",
        frame_header(7)[:-1] + b"\0" + b"payload" + FOOTER,
        frame_header(7) + b"pay",
        frame_header(7)[:5],
        b"",
    ],
    ids=["wrong footer", "wrong length crc", "cut payload", "cut header", "nothing"],
)
def test_a_damaged_frame_is_refused(record):
    with pytest.raises(RecordError):
        read_record(record)
