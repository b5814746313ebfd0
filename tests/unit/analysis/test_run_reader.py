import os
import threading

import pytest

from smd_agent.errors import TensorUnavailableForStep
from smd_agent.storage.run_reader import RunReader


@pytest.fixture
def listed(monkeypatch):
    """Record the folders that are listed."""
    folders = []
    real = os.listdir

    def recording(folder):
        folders.append(os.path.basename(folder))
        return real(folder)

    monkeypatch.setattr(os, "listdir", recording)
    return folders


def test_each_index_is_read_once(run):
    run.step(0).step(5)
    reader = RunReader(run.root)
    assert [(entry.step, entry.worker) for entry in reader.new_indexes()] == [(0, "worker_0"), (5, "worker_0")]
    assert list(reader.new_indexes()) == []
    run.step(1002).step(3)
    assert [entry.step for entry in reader.new_indexes()] == [3, 1002]


def test_neither_event_files_nor_settled_index_folders_are_listed(run, listed):
    run.step(0).step(1000)
    old = run.root / "index/000000000"
    os.utime(old, (1e9, 1e9))
    reader = RunReader(run.root)
    assert len(list(reader.new_indexes())) == 2
    listed.clear()
    assert list(reader.new_indexes()) == []
    assert listed == ["index", "000000001"]


def test_folders_outside_the_range_are_not_listed(run, listed):
    for step in (0, 1500, 2500):
        run.step(step)
    assert [entry.step for entry in RunReader(run.root, 1000, 2000).new_indexes()] == [1500]
    assert "000000000" not in listed


def test_a_file_that_vanishes_while_it_is_read_is_no_problem(run, monkeypatch):
    run.step(0).step(1)
    reader = RunReader(run.root)
    indexes = reader.new_indexes()
    assert next(indexes).step == 0
    (run.root / "index/000000000/000000000001_worker_0.json").unlink()
    assert list(indexes) == []
    assert reader.problems == {}
    run.step(1)
    assert [entry.step for entry in reader.new_indexes()] == [1]


def test_a_late_event_file_is_waited_for(run):
    run.step(0, event=False)
    reader = RunReader(run.root)
    place = next(iter(reader.new_indexes()))
    later = threading.Timer(0.05, lambda: run.step(0))
    later.start()
    assert reader.read(place, "t").value.shape == (2, 2)
    later.join()


@pytest.mark.parametrize("reason", ["the run ended", "the worker went on", "the index is old", "no retries"])
def test_an_event_file_that_cannot_come_is_not_waited_for(run, reason, monkeypatch):
    # With this wait the test would hang if it waited.
    monkeypatch.setattr("smd_agent.storage.run_reader.EVENT_FILE_POLL_SECONDS", 100.0)
    monkeypatch.setenv("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", "0" if reason == "no retries" else "5")
    run.step(0, event=False)
    if reason == "the run ended":
        run.end()
    elif reason == "the worker went on":
        run.step(1001)
    elif reason == "the index is old":
        os.utime(run.root / "index/000000000/000000000000_worker_0.json", (1e9, 1e9))
    reader = RunReader(run.root)
    place = next(iter(reader.new_indexes()))
    with pytest.raises(TensorUnavailableForStep):
        reader.read(place, "t")
