"""Files of a run that are not what they should be end in an error with a sentence, and what is sound is still read."""

from __future__ import annotations

import json
import resource
import socket
import struct

import numpy as np
import pytest
from crc32c import crc32c

from smd_agent import create_trial
from smd_agent.cli import main
from smd_agent.errors import DamagedRecord, SMDebugRuntimeError
from smd_agent.formats import messages
from smd_agent.formats.event_encoder import CHECKSUM_BYTES, CHECKSUM_KEY
from smd_agent.formats.paths import claim_path, collections_path, event_path, index_path
from smd_agent.formats.tfrecord import FOOTER, FRAME_BYTES, FRAME_HEADER_BYTES, frame_header
from smd_agent.storage.event_file_reader import FileReader

INDEX, EVENTS, COLLECTIONS = index_path(1, "worker_0"), event_path(1, "worker_0"), collections_path("worker_0")
MEAN = "smdebug/reductions/mean/t"
GIB = 1 << 30


@pytest.fixture
def two_steps(run):
    run.collections(all=".*")
    for step in range(2):
        run.step(step, {"t": np.full(3, step, np.float32), MEAN: np.float64(step)})
    return run


@pytest.fixture
def little_memory():
    """Lets the process have one GiB more than it has."""
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + GIB, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def opened(run):
    trial = create_trial(str(run.root), timeout=0)
    trial.maybe_refresh()
    return trial


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe{}",
        b"[" * 100_000,
        b'{"_meta": {"num_workers": ' + b"9" * 5000 + b"}}",
        b"[]",
        b'{"collections": []}',
        b'{"collections": "x"}',
        b'{"collections": {"a": "x"}}',
        b'{"collections": {"a": 5}}',
        b'{"collections": {"a": [{}]}}',
        b'{"collections": {"a": {"name": ["a"]}}}',
        b'{"collections": {"a": {"name": "a", "tensor_names": [["t"]]}}}',
        b'{"collections": {"a": {"name": "a", "tensor_names": {"t": 1}}}}',
        b'{"collections": {"a": {"name": "a", "include_regex": 5}}}',
        b'{"collections": {"a": {"name": "a", "include_regex": [5]}}}',
        b'{"collections": {"a": {"name": "a", "reduction_config": "mean"}}}',
        b'{"collections": {"a": {"name": "a", "reduction_config": {"reductions": 5}}}}',
        b'{"collections": {"a": {"name": "a", "reduction_config": {"reductions": [[]]}}}}',
        b'{"collections": {"a": {"name": "a", "save_config": "TRAIN"}}}',
        b'{"collections": {"a": {"name": "a", "save_config": {"TRAIN": 5}}}}',
        b'{"collections": {"a": {"name": "a", "save_config": {"TRAIN": {"save_interval": NaN}}}}}',
        b'{"_meta": 1.5}',
        b'{"_meta": ["x"]}',
        b'{"_meta": {"num_workers": NaN}}',
        b'{"_meta": {"num_workers": "many"}}',
        b'{"_meta": {"num_workers": []}}',
    ],
    ids=lambda content: content[:90].decode("latin-1"),
)
def test_a_collections_file_that_cannot_be_understood_is_one_sentence(two_steps, content, capsys):
    (two_steps.root / COLLECTIONS).write_bytes(content)
    with pytest.raises(SMDebugRuntimeError) as refused:
        opened(two_steps)
    assert str(two_steps.root / COLLECTIONS) in str(refused.value)
    assert main(["ls", str(two_steps.root)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def meta(**changed):
    return {"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": EVENTS, **changed}}


def noted(**changed):
    return {"shape_payload": [{"tensorname": "t", "originalname": "t", "shape": [3], **changed}]}


def placed(**changed):
    return {"tensor_payload": [{"tensorname": "t", "start_idx": 0, "length": 100, **changed}]}


@pytest.mark.parametrize(
    "changed",
    [
        *(meta(event_file_name=name) for name in ("../x", "/etc/passwd", "..", "events/../../x", "", ".", "a\0b")),
        *(meta(event_file_name=name) for name in ("\ud800", "x" * 5000, ["x"], {}, 5, True)),
        *(meta(mode_step=number) for number in (float("inf"), float("nan"), -1, [], None)),
        {"meta": ["TRAIN"]},
        meta(mode=["TRAIN"]),
        *(noted(shape=shape) for shape in ("12", [-1], [1.5], [None], {"3": 3}, 3)),
        noted(originalname=["t"]),
        *(placed(start_idx=place) for place in (2**63, float("inf"), float("nan"), "x", 1.5, True)),
        *(placed(length=length) for length in (2**62, -1, None)),
        {"tensor_payload": {"t": 1}},
        {"tensor_payload": 5},
        {"tensor_payload": ["t"]},
        {"shape_payload": [[]]},
    ],
    ids=lambda changed: json.dumps(changed)[:80],
)
def test_an_index_that_cannot_be_followed_is_a_listed_problem(two_steps, changed, capsys):
    path = two_steps.root / INDEX
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    trial = opened(two_steps)
    assert trial.problems.keys() == {INDEX}
    assert trial.tensor("t").steps() == [0]
    assert main(["ls", str(two_steps.root)]) == 1
    assert main(["show", str(two_steps.root), "t"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize("content", [b"\xff\xfe{}", b"9" * 5000, b"[" * 100_000, b'{"meta": ' + b"9" * 5000 + b"}"])
def test_an_index_that_is_no_index_is_a_listed_problem(two_steps, content):
    (two_steps.root / INDEX).write_bytes(content)
    assert opened(two_steps).problems.keys() == {INDEX}


def change_first_record(run, change):
    """Change the tensor of the first record of step 1; frame, checksum and index fit again."""
    path = run.root / EVENTS
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    event = messages.Event()
    event.ParseFromString(content[FRAME_HEADER_BYTES : FRAME_HEADER_BYTES + size - CHECKSUM_BYTES])
    change(event.summary.value[0])
    payload = event.SerializeToString()
    payload += CHECKSUM_KEY + struct.pack("<I", crc32c(payload))
    path.write_bytes(frame_header(len(payload)) + payload + FOOTER)
    fields = json.loads((run.root / INDEX).read_text())
    fields["tensor_payload"] = [{**fields["tensor_payload"][0], "start_idx": 0, "length": len(payload) + FRAME_BYTES}]
    (run.root / INDEX).write_text(json.dumps(fields))


def with_dimensions(*sizes):
    def change(value):
        del value.tensor.tensor_shape.dim[:]
        for size in sizes:
            value.tensor.tensor_shape.dim.add().size = size

    return change


def with_values(dtype, **fields):
    def change(value):
        value.tensor.ClearField("tensor_content")
        value.tensor.dtype = dtype
        for name, values in fields.items():
            getattr(value.tensor, name).extend(values)

    return change


def with_a_long_text(value):
    with_values(7, string_val=[b"x" * 100_000, *[b""] * 100_000])(value)


@pytest.mark.parametrize(
    "change",
    [
        with_dimensions(-1, -3),
        with_dimensions(-3),
        with_dimensions(3, *[1] * 70),
        with_dimensions(2**62, 2**62),
        with_values(19, half_val=[70_000, 1, 1]),
        with_values(19, half_val=[-1, 1, 1]),
        with_values(8, scomplex_val=[1, 2, 3, 4, 5]),
        with_values(14, half_val=[-1, 1, 1]),
        with_a_long_text,
    ],
    ids=[
        *("negative dimensions", "a negative dimension", "71 dimensions", "huge dimensions", "halves beyond 16 bits"),
        *("negative halves", "half of a complex number", "negative bfloat16", "texts that fill the memory"),
    ],
)
def test_a_record_whose_values_do_not_fit_is_damaged(two_steps, change, capsys):
    change_first_record(two_steps, change)
    tensor = opened(two_steps).tensor("t")
    assert tensor.value(0).tolist() == [0, 0, 0]
    with pytest.raises(DamagedRecord):
        tensor.value(1)
    assert main(["ls", str(two_steps.root)]) == 0
    assert main(["show", str(two_steps.root), "t"]) == 1
    with pytest.raises(DamagedRecord), FileReader(two_steps.root / EVENTS) as reader:
        list(reader.read_tensors())


@pytest.mark.parametrize("value", [np.zeros(0), np.zeros(2, np.complex64)], ids=["empty", "complex"])
def test_a_reduction_that_is_no_number_is_damaged(run, value, capsys):
    run.collections(all=".*").step(0, {"t": np.zeros(3), MEAN: value})
    tensor = opened(run).tensor("t")
    for ask in (tensor.reduction_values, lambda step: tensor.reduction_value(step, "mean")):
        with pytest.raises(DamagedRecord, match="no number"):
            ask(0)
    assert main(["show", str(run.root), "t"]) == 1
    assert "no number" in capsys.readouterr().err


def test_a_reduction_that_is_text_is_damaged(run):
    def to_text(value):
        with_values(7, string_val=[b"many"])(value)
        value.tag = MEAN

    run.collections(all=".*").step(0).step(1, {MEAN: np.float64(0)})
    change_first_record(run, to_text)
    with pytest.raises(DamagedRecord, match="no number"):
        opened(run).tensor("t").reduction_values(1)


def test_a_folder_in_the_place_of_an_event_file_is_named(two_steps):
    (two_steps.root / EVENTS).unlink()
    (two_steps.root / EVENTS).mkdir()
    with pytest.raises(SMDebugRuntimeError, match="Is a directory"):
        opened(two_steps).tensor("t").value(1)


def claim_a_record(run, length, file_size):
    """Have step 1 begin with a record that claims so many bytes, in an event file that is nearly all a hole."""
    path = run.root / EVENTS
    with path.open("wb") as file:
        file.write(frame_header(length - FRAME_BYTES))
        file.truncate(file_size)
    fields = json.loads((run.root / INDEX).read_text())
    fields["tensor_payload"][0].update(start_idx=0, length=length)
    (run.root / INDEX).write_text(json.dumps(fields))
    return path


@pytest.mark.usefixtures("impatient", "little_memory")
@pytest.mark.parametrize("length", [8 * GIB, 3 * GIB, 2**62])
def test_a_record_larger_than_a_record_can_be_is_not_read(two_steps, length):
    path = claim_a_record(two_steps, length, 8 * GIB)
    assert opened(two_steps).problems.keys() == {INDEX}
    with pytest.raises(DamagedRecord), FileReader(path) as reader:
        list(reader.read_tensors())


@pytest.mark.usefixtures("impatient", "little_memory")
@pytest.mark.parametrize("file_size", [8 * GIB, 100])
def test_a_record_that_does_not_fit_into_memory_is_named(two_steps, file_size):
    path = claim_a_record(two_steps, 2 * GIB, file_size)
    with pytest.raises(SMDebugRuntimeError, match=r"no memory|ends inside"):
        opened(two_steps).tensor("t").value(1)
    with pytest.raises(SMDebugRuntimeError), FileReader(path) as reader:
        list(reader.read_tensors())


@pytest.mark.usefixtures("impatient", "little_memory")
@pytest.mark.parametrize("size", [8 * GIB, GIB - 1])
def test_a_huge_file_of_zeros_is_not_read_as_text(two_steps, size):
    for name in (INDEX, COLLECTIONS):
        with (two_steps.root / name).open("wb") as file:
            file.truncate(size)
        if name is INDEX:
            assert opened(two_steps).problems.keys() == {INDEX}
    with pytest.raises(SMDebugRuntimeError, match=r"cannot be (read|understood)"):
        opened(two_steps)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", [INDEX, EVENTS, COLLECTIONS])
def test_a_link_to_a_device_without_end_is_not_read(two_steps, name):
    path = two_steps.root / name
    path.unlink()
    path.symlink_to("/dev/zero")
    if name == COLLECTIONS:
        with pytest.raises(SMDebugRuntimeError, match="not a regular file"):
            opened(two_steps)
        return
    trial = opened(two_steps)
    assert trial.tensor("t").value(0).tolist() == [0, 0, 0]
    if name == EVENTS:
        with pytest.raises(DamagedRecord, match="not a regular file"):
            trial.tensor("t").value(1)
    assert trial.problems.keys() == ({INDEX} if name == INDEX else set())


@pytest.mark.parametrize("pid", ["1e400", "9" * 30, "9" * 5000, "-1", "true", "[" * 100_000, '"\\ud800"'], ids=range(7))
def test_a_claim_that_names_nobody_is_passed_over(two_steps, pid, capsys):
    (two_steps.root / claim_path()).write_text(f'{{"host": {json.dumps(socket.gethostname())}, "pid": {pid}}}')
    assert main(["ls", str(two_steps.root)]) == 0
    assert "State" in capsys.readouterr().out
