"""Numbers taken from records without decoding these."""

import math
import struct

import numpy as np
import pytest
from crc32c import crc32c

from smd_agent.core.modes import ModeKeys
from smd_agent.formats.event_decoder import decode_tensor
from smd_agent.formats.event_encoder import HeadEncoder, ScalarBlock, Stamp, tail
from smd_agent.formats.scalar_columns import scalar_value
from smd_agent.formats.tfrecord import FRAME_HEADER_BYTES, read_record

STAMP = Stamp(300, ModeKeys.EVAL, 12, 1e9)
NAMES = ("smdebug/reductions/l2/a", "ö" * 200, "")


def record(name, value, dtype=np.float64, shape=()):
    array = np.full(shape, value, dtype)
    body = HeadEncoder().head(STAMP, name, array.dtype, array.shape) + array.tobytes()
    return body + tail(crc32c(body[FRAME_HEADER_BYTES:]))


@pytest.mark.parametrize("value", [0.0, -1.5, 5e-324, math.inf, math.nan])
def test_a_scalar_is_what_the_record_says(value):
    block = ScalarBlock(NAMES, STAMP)
    content = memoryview(block.render(STAMP, np.full(len(NAMES), value)).tobytes())
    start = 0
    for name, length in zip(NAMES, block.lengths, strict=True):
        one = content[start : start + length]
        assert struct.pack("<d", scalar_value(name, one)) == struct.pack("<d", value)
        assert struct.pack("<d", decode_tensor(read_record(one)).value[()]) == struct.pack("<d", value)
        start += length


def test_a_changed_record_gives_no_number():
    sound = record("a", 1.25)
    assert scalar_value("a", memoryview(sound)) == 1.25
    for place in range(len(sound)):
        for bit in range(8):
            harmed = bytearray(sound)
            harmed[place] ^= 1 << bit
            assert scalar_value("a", memoryview(bytes(harmed))) is None
    for end in range(len(sound)):
        assert scalar_value("a", memoryview(sound[:end])) is None


@pytest.mark.parametrize(
    "other",
    [
        record("b", 1.0),
        record("xa", 1.0),
        record("a", 1, np.float32),
        record("a", 1, np.int64),
        record("a", 1.0, shape=(1,)),
    ],
)
def test_another_record_gives_no_number(other):
    assert scalar_value("a", memoryview(other)) is None
