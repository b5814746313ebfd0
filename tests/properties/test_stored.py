"""What is written of any values is read back equal: by the reader, and by protobuf alone."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.strategies import NUMBERS, recipes, unchanged

from smd_agent.core.display_collection import DisplayCollections
from smd_agent.core.distribution import distribution_of, has_distribution
from smd_agent.core.modes import ModeKeys
from smd_agent.core.value_writing import write_raw
from smd_agent.errors import SMDebugTypeError
from smd_agent.formats import messages
from smd_agent.formats.dtypes import data_type
from smd_agent.formats.event_decoder import decode_tensor, peek_form
from smd_agent.formats.index import IndexParser
from smd_agent.formats.scalar_columns import scalar_value
from smd_agent.formats.tfrecord import FRAME_HEADER_BYTES, read_record
from smd_agent.storage.run_writer import RunWriter
from smd_agent.storage.step_file import StepFile
from smd_agent.storage.tensorboard_files import BoardStep

NAMES = st.text(min_size=1, max_size=40) | st.text(alphabet='ab/:_.é€😀\n"\\\x00', min_size=1, max_size=300)
STEPS = st.sampled_from([0, 1, 9, 10, 99, 127, 128, 16_383, 16_384, 2**31 - 1, 2**31, 2**40])
TEXTS = st.text(max_size=30) | st.text(alphabet=st.characters(min_codepoint=0xD700, max_codepoint=0xE100), max_size=5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    writer = RunWriter(str(tmp_path_factory.mktemp("properties") / "run"))
    assert writer.start("worker_0", alone=True) is None
    writer.counted = itertools.count()
    yield writer
    writer.close(end_marker=False)


def stored(run, mode, fill):
    """The records of one step by name, after ``fill`` was given its file."""
    step = next(run.counted)
    file = run.begin_step(step, mode, step)
    assert isinstance(file, StepFile)
    fill(file)
    run.commit(file)
    if file.is_empty:
        return {}
    assert run.flush()
    text = (run.root / file.index_name).read_text()
    payload = IndexParser().parse(text).payload
    data = (run.root / file.event_names[0]).read_bytes()
    found = {}
    for name in payload.tensors.names:
        start, length = payload.location(name)
        found[name] = data[start : start + length]
    assert sum(map(len, found.values())) <= len(data)
    for entry in json.loads(text)["tensor_payload"]:
        assert entry["tensorname"] in found
    for path in (file.index_name, *file.event_names):
        (run.root / path).unlink()
    return found


def by_protobuf(record):
    """Dtype, shape and bytes of a tensor, as protobuf parses its record."""
    event = messages.Event()
    event.ParseFromString(bytes(record[FRAME_HEADER_BYTES:-4]))
    (value,) = event.summary.value
    return value.tag, value.tensor.dtype, tuple(dim.size for dim in value.tensor.tensor_shape.dim), value.tensor


@given(st.dictionaries(NAMES, recipes(NUMBERS), min_size=1, max_size=4), st.sampled_from([*ModeKeys]))
def test_any_tensors_come_back(run, drawn, mode):
    arrays = {name: recipe.make() for name, recipe in drawn.items()}
    before = {name: unchanged(array) for name, array in arrays.items()}

    def fill(file):
        for name, array in arrays.items():
            write_raw(file, name, (array, None))

    found = stored(run, mode, fill)
    assert {name: unchanged(array) for name, array in arrays.items()} == before
    assert [*found] == [*arrays]
    for name, array in arrays.items():
        read = decode_tensor(read_record(found[name]))
        little = array.astype(array.dtype.newbyteorder("<"))
        assert (read.tag, read.mode, read.value.shape) == (name, mode, array.shape)
        assert read.value.dtype == little.dtype
        assert read.dtype == array.dtype.name
        assert read.value.tobytes() == np.ascontiguousarray(little).tobytes()
        tag, dtype, shape, tensor = by_protobuf(found[name])
        assert (tag, dtype, shape) == (name, data_type(little.dtype), array.shape)
        assert tensor.tensor_content == np.ascontiguousarray(little).tobytes()
        form = peek_form(found[name][FRAME_HEADER_BYTES:])
        assert (form.dtype, form.shape) == (array.dtype.name, array.shape)


@given(st.lists(NAMES, min_size=1, max_size=8, unique=True), st.integers(0, 1000), st.sampled_from([*ModeKeys]))
def test_any_scalars_come_back(run, names, seed, mode):
    values = np.frombuffer(np.random.default_rng(seed).bytes(8 * len(names)), np.float64)
    found = stored(run, mode, lambda file: file.add_scalars(tuple(names), values))
    assert [*found] == names
    for name, value in zip(names, values, strict=True):
        np.testing.assert_equal(scalar_value(name, memoryview(found[name])), value)
        read = decode_tensor(read_record(found[name]))
        assert (read.tag, read.value.shape, read.value.tobytes()) == (name, (), value.tobytes())


@given(NAMES, st.lists(TEXTS, min_size=1, max_size=5))
def test_any_text_comes_back(run, name, texts):
    array = np.array(texts)
    found = stored(run, ModeKeys.TRAIN, lambda file: write_raw(file, name, (array, None)))
    read = decode_tensor(read_record(found[name]))
    # Half of a pair of code units is no text, and is spelled out.
    wanted = [text.encode("utf-8", "backslashreplace").decode() for text in array.tolist()]
    assert read.value.tolist() == wanted
    assert (read.tag, read.dtype) == (name, "str")


OTHERS = [
    np.array([1, "a", None], object),
    np.array(["2020-01-01"], "datetime64[s]"),
    np.array([1], "timedelta64[s]"),
    np.array([b"a", b"bc"]),
    np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
    np.ones(3, np.longdouble),
    np.ones(3, np.clongdouble),
    np.zeros(3, "V7"),
]


@pytest.mark.parametrize("array", OTHERS, ids=lambda array: str(array.dtype))
def test_what_the_format_has_no_place_for_is_said(run, array, capsys):
    name = f"x of {array.dtype}"

    def fill(file):
        write_raw(file, name, (array, None))
        write_raw(file, "y", (np.ones(2), None))

    assert [*stored(run, ModeKeys.TRAIN, fill)] == ["y"]
    assert f"{name} cannot be saved: " in capsys.readouterr().err
    with pytest.raises(SMDebugTypeError):
        data_type(array.dtype)


@given(recipes(NUMBERS))
def test_any_tensor_has_a_picture(recipe):
    array = recipe.make()
    board = BoardStep(0, ModeKeys.TRAIN, 1.0, DisplayCollections())
    board.add("x", array)
    assert len(board.numbers) == (array.size == 1 and array.dtype.kind in "fiub")
    if not has_distribution(array):
        return
    found = distribution_of(array)
    with np.errstate(all="ignore"):
        x = array.astype(np.float64).reshape(-1)
    finite = x[np.isfinite(x)]
    assert (found.size, found.others) == (finite.size, x.size - finite.size)
    if finite.size:
        assert (found.low, found.high) == (finite.min(), finite.max())
        ends, counts = found.buckets()
        assert counts.sum() == finite.size
        assert (np.diff(ends) > 0).all()
        assert ends[-1] >= finite.max()
