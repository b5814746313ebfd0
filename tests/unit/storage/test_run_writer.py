"""Steps as they reach the disk, and what happens when the disk fails, stands still or is shared."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.event_decoder import decode_tensor
from smd_agent.formats.paths import collections_path
from smd_agent.formats.tfrecord import read_record
from smd_agent.storage import atomic_file, step_output, worker_files
from smd_agent.storage.run_writer import RunWriter
from smd_agent.storage.writer_thread import BLOCK_BYTES, Writer


@pytest.fixture
def run(tmp_path):
    writer = RunWriter(str(tmp_path / "run"))
    assert writer.start("worker_0", alone=True) is None
    yield writer
    writer.close(end_marker=False)


def save(run, step, tensors, shapes=()):
    file = run.begin_step(step, ModeKeys.TRAIN, step)
    for name, array in tensors.items():
        file.add(name, array)
    for name, shape in shapes:
        file.add_shape(name, name, shape)
    run.commit(file)
    return file


def read_step(root, step):
    index = json.loads((root / f"index/{step // 1000:09d}/{step:012d}_worker_0.json").read_text())
    data = (root / index["meta"]["event_file_name"]).read_bytes()
    return {
        entry["tensorname"]: decode_tensor(read_record(data[entry["start_idx"] : entry["start_idx"] + entry["length"]]))
        for entry in index["tensor_payload"]
    }


def test_values_of_every_size_are_read_back(run):
    rng = np.random.default_rng(0)
    sizes = (1, 10, 16383, 16384, 16385, BLOCK_BYTES // 4 - 1, BLOCK_BYTES // 4, 3 * BLOCK_BYTES // 4 + 5, 17)
    tensors = {f"t{i}": rng.standard_normal(n).astype(np.float32) for i, n in enumerate(sizes)}
    save(run, 12, tensors)
    assert run.flush()
    found = read_step(run.root, 12)
    assert list(found) == list(tensors)
    for name, array in tensors.items():
        np.testing.assert_array_equal(found[name].value, array)


def test_every_place_of_the_checksum_in_a_block_works(run):
    for fill in range(BLOCK_BYTES - 400, BLOCK_BYTES - 100, 7):
        save(run, fill, {"fill": np.zeros(fill, np.uint8), "large": np.arange(70_000, dtype=np.uint8)})
        assert run.flush()
        np.testing.assert_array_equal(read_step(run.root, fill)["large"].value, np.arange(70_000, dtype=np.uint8))
        (run.root / f"events/{fill:012d}/{fill:012d}_worker_0.tfevents").unlink()


def test_what_is_handed_over_may_change_afterwards(run):
    array = np.ones(100_000, np.float32)
    save(run, 0, {"x": array})
    array[:] = 7
    run.flush()
    assert read_step(run.root, 0)["x"].value.max() == 1


def test_memory_orders_and_byte_orders(run):
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    save(run, 0, {"transposed": matrix.T, "strided": matrix[:, ::2], "big": matrix.astype(">f4")})
    run.flush()
    found = read_step(run.root, 0)
    np.testing.assert_array_equal(found["transposed"].value, matrix.T)
    np.testing.assert_array_equal(found["strided"].value, matrix[:, ::2])
    np.testing.assert_array_equal(found["big"].value, matrix)


def test_a_name_that_comes_twice_is_one_value(run):
    file = run.begin_step(0, ModeKeys.TRAIN, 0)
    for value in (1.0, 2.0):
        file.add("x", np.full(3, value))
        file.add_scalars(("a", "b"), np.full(2, value))
    file.add_scalars(("b", "x", "c"), np.full(3, 3.0))
    run.commit(file)
    run.flush()
    assert run.saved.tensors == len({"x", "a", "b", "c"})
    assert "(4 values," in run.summary()


def test_a_step_of_shapes_has_an_index_only(run):
    save(run, 3, {}, [("x", (2, 3))])
    run.flush()
    index = json.loads((run.root / "index/000000000/000000000003_worker_0.json").read_text())
    assert index["shape_payload"] == [{"tensorname": "x", "originalname": "x", "shape": [2, 3]}]
    assert "event_file_name" not in index["meta"]
    assert not (run.root / "events").exists()


def test_an_empty_step_leaves_no_file(run):
    save(run, 3, {})
    run.flush()
    assert not (run.root / "index").exists()


def test_the_event_file_is_complete_before_its_index_appears(run, monkeypatch):
    order = []
    replace = os.replace

    def watched(source, target, **folders):
        order.append(Path(target).suffix)
        assert not any(path.suffix == ".json" for path in run.root.glob("index/*/*.json"))
        replace(source, target, **folders)

    monkeypatch.setattr(step_output.os, "replace", watched)
    save(run, 0, {"x": np.ones(5)})
    run.flush()
    assert order == [".tfevents", ".json"]


def test_no_thread_and_no_file_before_the_first_step(tmp_path):
    before = threading.active_count()
    RunWriter(str(tmp_path / "run"))
    assert threading.active_count() == before
    assert not (tmp_path / "run").exists()


def test_a_failed_write_is_reported_once_and_the_run_goes_on(run, monkeypatch, capsys):
    write = os.write

    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(step_output.os, "write", full)
    for step in range(5):
        save(run, step, {"x": np.ones(200_000)})
    assert run.flush()
    monkeypatch.setattr(step_output.os, "write", write)
    save(run, 9, {"x": np.ones(3)})
    assert run.flush()
    lines = [line for line in capsys.readouterr().err.splitlines() if "No space left" in line]
    assert len(lines) == 1
    assert run.steps_lost == 5
    assert read_step(run.root, 9)["x"].value.tolist() == [1, 1, 1]
    assert "5 could not be written" in run.summary()
    assert not list(run.root.rglob("*.tmp"))


COLLECTIONS = '{"collections": {}, "_meta": {"num_workers": 1}}'


@pytest.fixture
def full_disk(monkeypatch):
    """A disk that takes nothing between ``full_disk.set()`` and ``full_disk.clear()``."""
    full = threading.Event()
    write, write_bytes = os.write, Path.write_bytes

    def check():
        if full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(step_output.os, "write", lambda *args: check() or write(*args))
    monkeypatch.setattr(step_output.Path, "write_bytes", lambda *args: check() or write_bytes(*args))
    full.check = check
    return full


def collections_file(run):
    return run.root / "collections/000000000/worker_0_collections.json"


def test_a_collections_file_that_failed_is_written_with_a_later_step(run, full_disk):
    full_disk.set()
    run.write_collections(COLLECTIONS)
    assert run.flush()
    full_disk.clear()
    for step in range(2):
        save(run, step, {"x": np.ones(3)})
    assert run.flush()
    assert collections_file(run).read_text() == COLLECTIONS
    assert run.steps_lost == 0


@pytest.mark.parametrize("closings", [1, 2])
def test_a_collections_file_that_failed_is_written_at_the_end(run, full_disk, closings):
    save(run, 0, {"x": np.ones(3)})
    assert run.flush()
    full_disk.set()
    run.write_collections(COLLECTIONS)
    assert run.flush()
    if closings == 2:
        run.close(end_marker=False)
    full_disk.clear()
    run.close(end_marker=True)
    assert collections_file(run).read_text() == COLLECTIONS
    assert (run.saved.steps, run.steps_lost) == (1, 0)


def test_the_newest_collections_file_is_the_one_that_is_written_again(run, full_disk):
    run.write_collections("first")
    assert run.flush()
    full_disk.set()
    for text in ("second", "third"):
        run.write_collections(text)
    assert run.flush()
    full_disk.clear()
    run.close(end_marker=True)
    assert collections_file(run).read_text() == "third"


def test_a_collections_file_that_cannot_be_written_at_all_is_told(run, full_disk, capsys):
    full_disk.set()
    run.write_collections(COLLECTIONS)
    run.close(end_marker=True)
    lines = [line for line in capsys.readouterr().err.splitlines() if "collections file" in line]
    assert len(lines) == 1
    assert str(collections_file(run)) in lines[0]


def test_a_run_whose_collections_file_failed_for_good_has_no_end_mark_and_can_be_read(run, full_disk, monkeypatch):
    save(run, 0, {"x": np.ones(3)})
    assert run.flush()
    monkeypatch.setattr(worker_files, "replace_file", lambda *args: full_disk.check())
    full_disk.set()
    run.write_collections(COLLECTIONS)
    run.close(end_marker=True)
    trial = create_trial(str(run.root), timeout=0)
    assert trial.tensor("x").value(0).tolist() == [1, 1, 1]


def test_a_collections_file_is_written_once_for_each_text(run, monkeypatch):
    put = []
    replace_file = atomic_file.replace_file
    monkeypatch.setattr(worker_files, "replace_file", lambda *args: put.append(args[1]) or replace_file(*args))
    for step in range(3):
        run.write_collections(COLLECTIONS)
        save(run, step, {"x": np.ones(3)})
    run.close(end_marker=False)
    assert put == [collections_path("worker_0")]


def test_a_disk_that_stands_still_costs_steps_and_not_the_run(tmp_path, monkeypatch, capsys):
    run = RunWriter(str(tmp_path / "run"), budget_bytes=2 * BLOCK_BYTES)
    run.start("worker_0", alone=True)
    run._writer = Writer(2 * BLOCK_BYTES, run._at.failures.write_failed, stall_seconds=0.2)
    moving = threading.Event()
    write = os.write
    monkeypatch.setattr(step_output.os, "write", lambda *args: moving.wait() and write(*args))
    file = save(run, 0, {"x": np.ones(BLOCK_BYTES)})
    assert file.lost
    assert "takes no more data" in capsys.readouterr().err
    # A busy machine may take longer.
    run._writer._stall_seconds = 60.0
    moving.set()
    assert run.flush()
    assert not save(run, 1, {"x": np.ones(3)}).lost
    run.close(end_marker=True)
    assert list(read_step(run.root, 1)) == ["x"]
    assert not (run.root / "index/000000000/000000000000_worker_0.json").exists()


def test_a_disk_that_stands_still_is_waited_for_once(tmp_path):
    run = RunWriter(str(tmp_path / "run"), budget_bytes=10 * BLOCK_BYTES)
    run.start("worker_0", alone=True)
    run._writer = Writer(10 * BLOCK_BYTES, run._at.failures.write_failed, stall_seconds=0.5)
    moving = threading.Event()
    run._writer.submit(moving.wait)
    values = np.ones(14 << 18, np.float32)
    waited, lost = [], []
    for step in range(8):
        since = time.monotonic()
        lost.append(save(run, step, {"x": values}).lost)
        waited.append(time.monotonic() - since)
    assert not lost[0]
    assert lost[-4:] == [True] * 4
    # Each lost step gives its blocks back, which does not mean that the disk has moved.
    assert [seconds > 0.4 for seconds in waited].count(True) == 1
    assert sum(waited) < 1.5
    moving.set()
    assert run.flush()
    assert run.saved.steps == lost.count(False)
    assert not save(run, 8, {"x": values}).lost
    run.close(end_marker=False)
    assert read_step(run.root, 8)["x"].value.shape == values.shape


def test_a_disk_that_stands_still_again_is_waited_for_again(tmp_path):
    run = RunWriter(str(tmp_path / "run"), budget_bytes=4 * BLOCK_BYTES)
    run.start("worker_0", alone=True)
    run._writer = Writer(4 * BLOCK_BYTES, run._at.failures.write_failed, stall_seconds=0.3)
    values = np.ones(6 * BLOCK_BYTES, np.uint8)
    for step in range(2):
        moving = threading.Event()
        run._writer.submit(moving.wait)
        since = time.monotonic()
        assert save(run, step, {"x": values}).lost
        assert time.monotonic() - since > 0.25
        moving.set()
        assert run.flush()
    run.close(end_marker=False)


def test_a_thread_that_is_stuck_is_not_overtaken_by_another(tmp_path, monkeypatch):
    run = RunWriter(str(tmp_path / "run"))
    run.start("worker_0", alone=True)
    run._writer = Writer(on_failure=run._at.failures.write_failed, stall_seconds=0.2)
    moving = threading.Event()
    write = os.write
    monkeypatch.setattr(step_output.os, "write", lambda *args: moving.wait() and write(*args))
    save(run, 0, {"x": np.ones(300_000)})
    run.close(end_marker=False)
    # A second thread would put the index in place while the first one has not written the values yet.
    run._writer.submit(int)
    time.sleep(0.1)
    assert not list(run.root.rglob("*.json"))
    moving.set()
    assert run.flush()
    assert read_step(run.root, 0)["x"].value.shape == (300_000,)


def test_closing_gives_the_folder_up_and_marks_the_end(tmp_path):
    run = RunWriter(str(tmp_path))
    run.start("worker_0", alone=True)
    save(run, 0, {"x": np.ones(3)})
    run.close(end_marker=True)
    assert not (tmp_path / "claim.smd").exists()
    assert (tmp_path / "training_job_end.ts").read_bytes() == b""
    assert run.saved.steps == 1
