"""A run in a store as it is read: what is fetched, what is new of one that goes on, and what a bad store costs."""

from __future__ import annotations

import gc
import os
import time

import numpy as np
import pytest

pytest.importorskip("moto")

from harness.store_server import contents, files, store_server, stored
from harness.written_runs import readable, save

from smd_agent import create_trial, guard
from smd_agent.alias.helpers import has_training_ended, training_has_ended
from smd_agent.cli.errors import CommandError
from smd_agent.cli.open_run import is_awaited, open_run
from smd_agent.core.modes import ModeKeys
from smd_agent.errors import DamagedRecord, SMDebugRuntimeError, TensorUnavailableForStep
from smd_agent.formats import paths
from smd_agent.storage import store_reader
from smd_agent.trials import S3Trial

STEPS = 20
LARGE = (12 << 20) // 8


@pytest.fixture(scope="module")
def server():
    with store_server() as running:
        yield running


@pytest.fixture(scope="module")
def run(server, tmp_path_factory):
    """A run of twenty small steps and one that is large, in the store and in a folder."""
    guard.lines.said.clear()
    folder = tmp_path_factory.mktemp("run") / "run"
    writer = stored(str(folder), upload_to="s3://bucket/read/run")
    save(writer, *range(STEPS))
    step = writer.begin_step(STEPS, ModeKeys.TRAIN, STEPS)
    for name in ("before", "x", "behind"):
        step.add(name, np.full(LARGE // 3, float(STEPS)))
    step.add("small", np.arange(3.0))
    writer.commit(step)
    writer.close(True)
    writer.clear_away()
    return folder


@pytest.fixture
def store(server, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server.heal()
    yield server
    server.heal()


def fetched(store) -> list[str]:
    """What has been read of event files, in order."""
    return [what.rpartition("/")[2] for what in store.faults.seen if what.startswith("GET ") and "/events/" in what]


def test_a_run_in_a_store_is_read_as_one_in_a_folder(store, run, tmp_path):
    trial, other = create_trial("s3://bucket/read/run/"), create_trial(str(run))
    assert (trial.name, trial.path) == ("run", "s3://bucket/read/run")
    assert trial.loaded_all_steps == other.loaded_all_steps
    assert trial.steps() == other.steps() == [*range(STEPS + 1)]
    assert trial.tensor_names() == other.tensor_names()
    for name in trial.tensor_names():
        for step in trial.tensor(name).steps():
            np.testing.assert_array_equal(trial.tensor(name).value(step), other.tensor(name).value(step))
    assert trial.wait_for_steps([3]) is None
    folder = trial.root
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    del trial
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize("prefix", ["read/run", "read/run/"])
def test_bucket_and_key_name_a_run_as_its_address_does(store, run, prefix):
    trial = S3Trial("mine", "bucket", prefix, range_steps=(2, 5))
    assert (trial.name, trial.bucket_name, trial.prefix_name) == ("mine", "bucket", "read/run/")
    assert trial.path == create_trial("s3://bucket/read/run").path
    assert trial.steps() == [2, 3, 4]
    assert trial.tensor("x").value(3)[0] == 3


def test_the_end_of_a_run_is_told_and_marked_in_a_store_as_in_a_folder(store, run, tmp_path, monkeypatch):
    assert has_training_ended("s3://bucket/read/run")
    assert has_training_ended(str(run))
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    for place in ("s3://bucket/told/run", str(tmp_path)):
        assert not has_training_ended(place)
        # There the service does it.
        training_has_ended(place)
        assert not has_training_ended(place)
    monkeypatch.delenv("TRAINING_JOB_NAME")
    for place in ("s3://bucket/told/run/", str(tmp_path)):
        training_has_ended(place)
        assert has_training_ended(place)
    assert contents("s3://bucket/told/run") == {paths.END_MARKER: b""}
    assert not has_training_ended("s3://bucket/told")
    with pytest.raises(OSError, match=r"bucket does not exist"):
        training_has_ended("s3://no-such-bucket/run")


def test_files_that_follow_each_other_come_together(store, run, monkeypatch):
    trial = create_trial("s3://bucket/read/run")
    store.faults.seen.clear()
    assert trial.tensor("x").value(12)[0] == 12
    assert fetched(store) == [f"{12:012d}_worker_0.tfevents"]
    assert [trial.tensor("x").value(step)[0] for step in range(STEPS)] == [*range(STEPS)]
    # All but the large one, each once.
    assert len(fetched(store)) == STEPS
    monkeypatch.setattr(store_reader, "_LARGEST_FOLDER", 1000)
    trial = create_trial("s3://bucket/read/run")
    assert [trial.tensor("x").value(step)[0] for step in range(STEPS)] == [*range(STEPS)]
    assert len(list(trial.root.rglob("*.tfevents"))) < 12


def test_of_a_large_file_the_parts_are_fetched_that_are_asked_for(store, run):
    trial = create_trial("s3://bucket/read/run")
    np.testing.assert_array_equal(trial.tensor("small").value(STEPS), np.arange(3.0))
    event = trial.root / paths.event_path(STEPS, "worker_0")
    assert event.stat().st_blocks * 512 < 3 << 20
    assert (trial.tensor("x").value(STEPS) == STEPS).all()
    assert event.stat().st_blocks * 512 < 7 << 20
    assert trial.tensor("behind").shape(STEPS) == (LARGE // 3,)
    assert (trial.tensor("behind").value(STEPS) == STEPS).all()


def test_a_run_that_goes_on_is_followed(store, monkeypatch):
    monkeypatch.setattr(store_reader, "LOOK_SECONDS", 0.0)
    guard.lines.said.clear()
    address = "s3://bucket/live/run"
    assert is_awaited(address)
    writer = stored(address)
    save(writer, 0)
    trial = create_trial(address, timeout=20)
    trial.wait_for_steps([0])
    assert not trial.loaded_all_steps
    assert not is_awaited(address)
    save(writer, 1)
    trial.wait_for_steps([1])
    assert trial.tensor("x").value(1)[0] == 1
    writer.close(True)
    writer.clear_away()
    assert trial.steps() == [0, 1]
    assert trial.loaded_all_steps
    changed = (trial.root / paths.index_path(1, "worker_0")).stat().st_mtime
    assert abs(changed - time.time()) < 60
    assert readable(address) == [0, 1]


def test_what_goes_wrong_once_in_a_while_is_tried_again(store, run):
    store.faults.refuse, store.faults.drop = 3, 3
    assert create_trial("s3://bucket/read/run").tensor("x").value(7)[0] == 7


@pytest.mark.parametrize(
    "address, sentence",
    [
        ("s3://no-such-bucket/run", "s3://no-such-bucket/run cannot be read: The specified bucket does not exist"),
        ("s3://bucket/none", "there is no run at s3://bucket/none: no such folder"),
        ("gs://bucket/run", "gs://bucket/run cannot be read: Please install gcsfs to access Google Storage"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(store, address, sentence):
    with pytest.raises(SMDebugRuntimeError) as raised:
        create_trial(address, timeout=0)
    assert str(raised.value) == sentence
    with pytest.raises(CommandError) as told:
        open_run(address)
    assert told.value.args[0] == sentence


def test_a_store_nobody_has_credentials_for_is_one_sentence(store, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(SMDebugRuntimeError, match=r"^s3://bucket/run cannot be read: Unable to locate credentials$"):
        create_trial("s3://bucket/run")


def test_files_that_nobody_has_asked_for_are_written_nowhere(store, tmp_path):
    guard.lines.said.clear()
    address = "s3://bucket/hostile/run"
    writer = stored(address)
    save(writer, 0)
    writer.close(True)
    writer.clear_away()
    client = files()
    for name in (
        "index/../../../escaped.json",
        "lost/../escaped.json",
        "index/000000000/../../../0_w.json",
        "index/a",
    ):
        client.pipe_file(f"bucket/hostile/run/{name}", b"{}")
    trial = create_trial(address)
    assert trial.steps() == [0]
    found = [os.path.join(folder, name) for folder, _, names in os.walk(tmp_path) for name in names]
    assert [path for path in found if path.endswith(("/0_w.json", "/escaped.json"))] == []


def test_an_event_file_that_is_damaged_or_gone_is_named_by_its_address(store):
    guard.lines.said.clear()
    address = "s3://bucket/damaged/run"
    writer = stored(address)
    save(writer, 0, 1, 2)
    writer.close(True)
    writer.clear_away()
    event = paths.event_path(1, "worker_0")
    content = contents(address)[event]
    files().pipe_file(f"{address}/{event}", content[:-20] + bytes(20))
    files().rm_file(f"{address}/{paths.event_path(2, 'worker_0')}")
    trial = create_trial(address)
    assert trial.tensor("x").value(0)[0] == 0
    with pytest.raises(DamagedRecord, match=f"in {address}/{event}"):
        trial.tensor("x").value(1)
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("x").value(2)
