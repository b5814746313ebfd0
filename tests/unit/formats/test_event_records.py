import struct

import numpy as np
import pytest
from crc32c import crc32c

from smd_agent.core.modes import ModeKeys
from smd_agent.errors import SMDebugTypeError
from smd_agent.formats import messages
from smd_agent.formats.dtypes import data_type, numpy_dtype
from smd_agent.formats.event_decoder import decode_tensor, decode_tensors, peek_form
from smd_agent.formats.event_encoder import HeadEncoder, Stamp, tail
from smd_agent.formats.tfrecord import FRAME_HEADER_BYTES, RecordError, read_record

STAMP = Stamp(step=123456, mode=ModeKeys.EVAL, mode_step=300, wall_time=1234.5)
NUMBERS = {
    "int8": 6, "uint8": 4, "int16": 5, "uint16": 17, "int32": 3, "uint32": 22, "int64": 9, "uint64": 23, "float16": 19,
    "float32": 1, "float64": 2, "bool": 10, "complex64": 8, "complex128": 18,
}  # fmt: skip


def record_of(value, tag="conv/w:0", original=None):
    body = HeadEncoder().head(STAMP, tag, value.dtype, value.shape, original) + value.tobytes()
    return body + tail(crc32c(body[FRAME_HEADER_BYTES:]))


def old_event(**tensor_fields):
    """An event as older writers made it: no checksum, and any field of the tensor."""
    shape = tensor_fields.pop("shape", ())
    notes = tensor_fields.pop("notes", {"mode_step": "2", "mode": "1"})
    event = messages.Event(wall_time=5.0, step=9)
    value = event.summary.value.add(tag="t")
    value.tensor.SetInParent()
    for size in shape:
        value.tensor.tensor_shape.dim.add(size=size, name=f"t_{size}")
    for name, content in tensor_fields.items():
        if isinstance(content, list):
            getattr(value.tensor, name).extend(content)
        else:
            setattr(value.tensor, name, content)
    for name, content in notes.items():
        value.metadata.plugin_data.add(plugin_name=name, content=content)
    return event.SerializeToString()


@pytest.mark.parametrize("name, number", NUMBERS.items())
def test_every_dtype_comes_back_as_it_was(name, number):
    value = np.arange(-3, 3).astype(name).reshape(2, 3)
    assert data_type(value.dtype) == number
    assert numpy_dtype(number) == value.dtype
    read = decode_tensor(read_record(record_of(value)))
    assert read.value.dtype == value.dtype
    np.testing.assert_array_equal(read.value, value)
    assert (read.tag, read.step, read.mode, read.mode_step, read.wall_time, read.dtype) == (
        "conv/w:0", 123456, ModeKeys.EVAL, 300, 1234.5, name,
    )  # fmt: skip


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,)])
def test_empty_and_scalar_shapes_come_back(shape):
    read = decode_tensor(read_record(record_of(np.ones(shape, np.float32))))
    assert read.value.shape == shape


def test_a_read_array_can_be_written_to():
    value = decode_tensor(read_record(record_of(np.zeros(3)))).value
    value += 1
    assert value.tolist() == [1, 1, 1]


def test_text_comes_back():
    read = decode_tensor(read_record(HeadEncoder().text(STAMP, "t", ["a", "größer", ""])))
    assert (read.value.tolist(), read.dtype) == (["a", "größer", ""], "str")


def test_a_widened_tensor_names_the_dtype_it_had():
    read = decode_tensor(read_record(record_of(np.ones(2, np.float32), original="bfloat16")))
    assert (read.value.dtype, read.dtype) == (np.float32, "bfloat16")


@pytest.mark.parametrize("dtype", [">f4", "M8[s]", "U3", "O", "V2"])
def test_a_dtype_without_a_number_is_refused(dtype):
    with pytest.raises(SMDebugTypeError, match="is currently not supported"):
        data_type(np.dtype(dtype))


@pytest.mark.parametrize("value", [np.arange(6, dtype=np.int8), np.float64(2.5).reshape(())], ids=["int8", "scalar"])
def test_every_flipped_bit_of_a_record_is_noticed(value):
    record = record_of(value)
    assert decode_tensor(read_record(record)).value.tolist() == value.tolist()
    missed = []
    for bit in range(len(record) * 8):
        changed = bytearray(record)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            decode_tensor(read_record(bytes(changed)))
            missed.append(bit)
        except RecordError:
            continue
    assert missed == []


def test_a_value_that_looks_like_the_checksum_field_is_read():
    like_the_key = np.frombuffer(b"\xa5\x06" * 4, np.uint8)
    event = old_event(dtype=4, tensor_content=like_the_key.tobytes(), shape=(8,), notes={})
    assert event[-6:-4] == b"\xa5\x06"
    assert decode_tensor(event).value.tobytes() == like_the_key.tobytes()


def test_the_checksum_is_of_everything_before_it():
    payload = bytes(read_record(record_of(np.ones(3))))
    event = messages.Event.FromString(payload)
    assert event.payload_crc32c == crc32c(payload[:-6]) == struct.unpack("<I", payload[-4:])[0]


@pytest.mark.parametrize(
    "fields, expected",
    [
        ({"dtype": 3, "int_val": [1, -2], "shape": (2,)}, np.array([1, -2], np.int32)),
        ({"dtype": 6, "int_val": [-1]}, np.array(-1, np.int8)),
        ({"dtype": 9, "int64_val": [2**40], "shape": (1,)}, np.array([2**40])),
        ({"dtype": 1, "float_val": [0.5, 1.5]}, np.array([0.5, 1.5], np.float32)),
        ({"dtype": 2, "double_val": [0.1], "shape": (1, 1)}, np.array([[0.1]])),
        ({"dtype": 10, "bool_val": [True, False], "shape": (2,)}, np.array([True, False])),
        ({"dtype": 8, "scomplex_val": [1, 2, 3, 4], "shape": (2,)}, np.array([1 + 2j, 3 + 4j], np.complex64)),
        ({"dtype": 19, "half_val": [15360], "shape": (1,)}, np.array([1], np.float16)),
        ({"dtype": 14, "half_val": [0x3F80], "shape": (1,)}, np.array([1], np.float32)),
        ({"dtype": 14, "tensor_content": b"\x80\x3f\x00\x40", "shape": (2,)}, np.array([1, 2], np.float32)),
        ({"dtype": 6, "tensor_content": b"\xff", "shape": (1,)}, np.array([-1], np.int8)),
        ({"dtype": 11, "tensor_content": b"\xff", "shape": (1,)}, np.array([-1], np.int8)),
        ({"dtype": 1, "shape": (0,)}, np.zeros(0, np.float32)),
        ({"dtype": 0, "string_val": [b"x", b"yz"], "shape": (2,)}, np.array(["x", "yz"])),
    ],
)
def test_what_older_writers_left_is_read(fields, expected):
    read = decode_tensor(old_event(**fields))
    assert (read.mode, read.mode_step, read.step) == (ModeKeys.TRAIN, 2, 9)
    assert read.value.dtype == expected.dtype
    np.testing.assert_array_equal(read.value, expected)


def test_without_notes_the_mode_is_global():
    read = decode_tensor(old_event(dtype=1, float_val=[1.0], shape=(1,), notes={}))
    assert (read.mode, read.mode_step) == (ModeKeys.GLOBAL, 9)


def test_records_of_other_kinds_hold_no_tensor():
    version = messages.Event(wall_time=1.0, file_version="brain.Event:2").SerializeToString()
    assert list(decode_tensors(version)) == []
    with pytest.raises(RecordError, match="no tensor"):
        decode_tensor(version)


@pytest.mark.parametrize(
    "payload",
    [
        old_event(dtype=1, tensor_content=b"\0" * 7, shape=(2,)),
        old_event(dtype=1, tensor_content=b"\0" * 8, shape=(3,)),
        old_event(dtype=1, float_val=[1, 2], shape=(3,)),
        old_event(dtype=1, float_val=[1], notes={"mode": "9"}),
        old_event(dtype=1, float_val=[1])[:-3],
        b"\xff" * 30,
    ],
    ids=["odd length", "wrong shape", "too few", "unknown mode", "cut", "noise"],
)
def test_nonsense_is_refused(payload):
    with pytest.raises(RecordError):
        decode_tensor(payload)


def test_a_data_type_that_numpy_lacks_is_named():
    with pytest.raises(SMDebugTypeError, match="data type 20"):
        decode_tensor(old_event(dtype=20, tensor_content=b"x"))


@pytest.mark.parametrize("shape", [(), (2, 3), (300, 100)])
def test_the_head_of_a_record_tells_dtype_and_shape(shape):
    payload = bytes(read_record(record_of(np.zeros(shape, np.float32), original="bfloat16")))
    form = peek_form(payload[:200])
    assert form is not None
    assert (form.dtype, form.shape) == ("bfloat16", shape)
    old = peek_form(old_event(dtype=6, shape=shape, tensor_content=b"\0" * 500)[:100])
    assert old is not None
    assert (old.dtype, old.shape) == ("int8", shape)


@pytest.mark.parametrize("head", [b"", b"\x09", b"\xff" * 50, b"\x2a\x05\x0a\x03"])
def test_a_head_without_a_tensor_tells_nothing(head):
    assert peek_form(head) is None
