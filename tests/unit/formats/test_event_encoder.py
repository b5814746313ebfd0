"""Records built by hand are what protobuf and the reader make of them."""

from __future__ import annotations

import numpy as np
import pytest
from crc32c import crc32c

from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugTypeError
from smd_agent.formats.event_decoder import decode_tensor
from smd_agent.formats.event_encoder import HeadEncoder, ScalarBlock, Stamp, tail, varint
from smd_agent.formats.messages import Event
from smd_agent.formats.tfrecord import FRAME_HEADER_BYTES, read_record

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
STEPS = [(0, 0), (1, 1), (9, 9), (10, 10), (127, 99), (128, 100), (16383, 9999), (2**40, 10**12)]


def stamp(step=7, mode=ModeKeys.TRAIN, mode_step=3, wall_time=1.5):
    return Stamp(step, mode, mode_step, wall_time)


def record(at, tag, array, note=None):
    head = HeadEncoder().head(at, tag, array.dtype, array.shape, note)
    values = array.tobytes()
    return head + values + tail(crc32c(head[FRAME_HEADER_BYTES:] + values))


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**14, 2**35, 2**63 - 1])
def test_varint_is_protobufs(number):
    assert Event.FromString(b"\x10" + varint(number)).step == number


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 0), (2, 3, 4), (200, 300)])
def test_every_dtype_and_shape_comes_back(dtype, shape):
    array = np.random.default_rng(0).integers(0, 2, shape).astype(dtype) if dtype == "bool" else None
    array = np.random.default_rng(0).standard_normal(shape).__mul__(50).astype(dtype) if array is None else array
    array = np.asarray(array)
    found = decode_tensor(read_record(record(stamp(), "a/b:0 é", array)))
    assert (found.tag, found.step, found.mode, found.mode_step, found.wall_time) == (
        "a/b:0 é",
        7,
        ModeKeys.TRAIN,
        3,
        1.5,
    )
    assert found.value.dtype == array.dtype
    np.testing.assert_array_equal(found.value, array)


@pytest.mark.parametrize("step,mode_step", STEPS)
@pytest.mark.parametrize("mode", list(ModeKeys))
def test_steps_of_every_size_and_mode(step, mode_step, mode):
    found = decode_tensor(read_record(record(stamp(step, mode, mode_step), "x", np.float32([1, 2]))))
    assert (found.step, found.mode, found.mode_step) == (step, mode, mode_step)


def test_old_readers_find_mode_step_first_and_mode_second():
    event = Event.FromString(bytes(read_record(record(stamp(), "x", np.float32([1]), "bfloat16"))))
    plugins = [(p.plugin_name, p.content) for p in event.summary.value[0].metadata.plugin_data]
    assert plugins == [("mode_step", "3"), ("mode", "1"), ("dtype", "bfloat16")]


def test_a_widened_tensor_remembers_its_dtype():
    found = decode_tensor(read_record(record(stamp(), "x", np.float32([1]), "float8_e5m2")))
    assert found.dtype == "float8_e5m2"


def test_text_comes_back():
    found = decode_tensor(read_record(HeadEncoder().text(stamp(), "words", ["a", "", "grün"])))
    assert found.value.tolist() == ["a", "", "grün"]


def test_text_that_is_none_is_spelled_out():
    found = decode_tensor(read_record(HeadEncoder().text(stamp(), "odd\ud800", ["\udfff", "a\ud800b"])))
    assert (found.tag, found.value.tolist()) == ("odd\\ud800", ["\\udfff", "a\\ud800b"])
    assert decode_tensor(read_record(record(stamp(), "odd\ud800", np.ones(2)))).tag == "odd\\ud800"


@pytest.mark.parametrize("position", [0, 1, 17, 63, 64, 4095])
def test_filler_puts_the_values_at_a_multiple_of_64(position):
    array = np.arange(5, dtype=np.float32)
    head = HeadEncoder().head(stamp(), "x" * position, array.dtype, array.shape, None, position)
    assert (position + len(head)) % 64 == 0
    whole = head + array.tobytes() + tail(crc32c(head[FRAME_HEADER_BYTES:] + array.tobytes()))
    found = decode_tensor(read_record(whole))
    np.testing.assert_array_equal(found.value, array)
    assert (found.tag, found.mode_step) == ("x" * position, 3)


def test_unknown_dtype_is_refused():
    with pytest.raises(SMDebugTypeError, match="datetime64"):
        HeadEncoder().head(stamp(), "x", np.dtype("datetime64[s]"), (1,))


@pytest.mark.parametrize("step,mode_step", STEPS)
def test_a_block_of_scalars_is_the_same_bytes_as_single_records(step, mode_step):
    tags = ("a", "smdebug/reductions/l2/" + "x" * 200, "b")
    values = np.array([0.5, np.nan, -1e300])
    at = stamp(step, ModeKeys.EVAL, mode_step, 1e9)
    block = ScalarBlock(tags, stamp(step, ModeKeys.EVAL, mode_step, 3.25))
    single = b"".join(record(at, tag, np.asarray(value)) for tag, value in zip(tags, values, strict=True))
    assert block.fits(at)
    assert bytes(block.render(at, values)) == single
    assert sum(block.lengths) == len(single)


@pytest.mark.parametrize("before,after", [((127, 5), (128, 5)), ((5, 9), (5, 10))])
def test_a_block_does_not_fit_once_the_numbers_need_more_bytes(before, after):
    block = ScalarBlock(("a",), stamp(before[0], mode_step=before[1]))
    assert block.fits(stamp(before[0], mode_step=before[1], wall_time=99.0))
    assert not block.fits(stamp(after[0], mode_step=after[1]))
