"""Steps that are put in place while they are open, and get more afterwards."""

from __future__ import annotations

import os

import numpy as np
import pytest
from harness.written_runs import COLLECTIONS, started

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.paths import event_path, index_path
from smd_agent.storage.run_reader import RunReader
from smd_agent.storage.worker_files_reader import read_lost_steps
from smd_agent.storage.writer_thread import BLOCK_BYTES

EVENT, INDEX = event_path(3, "worker_0"), index_path(3, "worker_0")
LARGE = np.arange(2 * BLOCK_BYTES + 1000, dtype=np.uint8)


@pytest.fixture
def run(tmp_path):
    writer = started(tmp_path / "run")
    writer.write_collections(COLLECTIONS)
    yield writer
    writer.close(end_marker=False)


def opened(run, **tensors):
    """Step 3, with these tensors, put in place."""
    step = run.begin_step(3, ModeKeys.TRAIN, 3)
    for name, array in tensors.items():
        step.add(name, array)
    run.publish(step)
    assert run.flush()
    return step


def value(trial, name):
    return trial.tensor(name).value(3)


@pytest.mark.parametrize("first", [np.ones(3), LARGE], ids=["small", "large"])
@pytest.mark.parametrize("second", [np.zeros(2), LARGE[::-1]], ids=["small", "large"])
def test_what_comes_later_joins_what_is_there(run, first, second):
    step = opened(run, x=first)
    early = create_trial(str(run.root))
    (place,) = RunReader(run.root).new_indexes()
    np.testing.assert_array_equal(value(early, "x"), first)
    step.add("y", second)
    run.commit(step)
    assert run.flush()
    # The old index is right for the new file, too.
    np.testing.assert_array_equal(RunReader(run.root).read(place, "x").value, first)
    for trial in (early, create_trial(str(run.root))):
        for name, array in (("x", first), ("y", second)):
            np.testing.assert_array_equal(value(trial, name), array)
    assert (run.saved.steps, run.saved.tensors) == (1, 2)
    assert run.saved.size == sum((run.root / name).stat().st_size for name in (EVENT, INDEX))


def test_what_has_got_nothing_more_is_not_written_again(run):
    step = opened(run, x=LARGE)
    before = [os.stat(run.root / name) for name in (EVENT, INDEX)]
    run.publish(step)
    run.commit(step)
    assert run.flush()
    assert [os.stat(run.root / name) for name in (EVENT, INDEX)] == before
    assert (run.saved.steps, run.saved.tensors) == (1, 1)


def test_a_value_may_be_replaced_in_a_step_that_is_in_place(run):
    step = opened(run, x=np.ones(3), y=np.ones(2))
    step.drop({"x"})
    step.add("x", np.zeros(4))
    run.commit(step)
    assert run.flush()
    trial = create_trial(str(run.root))
    np.testing.assert_array_equal(value(trial, "x"), np.zeros(4))
    assert run.saved.tensors == 2


def test_a_step_that_has_only_shapes_so_far_gets_values(run):
    step = run.begin_step(3, ModeKeys.TRAIN, 3)
    step.add_shape("x", "x", (2, 3))
    run.publish(step)
    step.add("y", np.ones(2))
    run.commit(step)
    assert run.flush()
    trial = create_trial(str(run.root))
    assert trial.tensor("x").shape(3) == (2, 3)
    np.testing.assert_array_equal(value(trial, "y"), np.ones(2))


def test_an_empty_step_is_not_put_in_place(run):
    step = opened(run)
    assert not (run.root / INDEX).exists()
    step.add("x", np.ones(2))
    run.commit(step)
    assert run.flush()
    assert (run.root / INDEX).exists()


def test_a_full_disk_leaves_what_is_in_place(run, monkeypatch, capsys):
    step = opened(run, x=np.ones(3))
    write = os.write

    def full(descriptor, data):
        if b"later" in bytes(data):
            raise OSError(28, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", full)
    step.add("later", np.zeros(2))
    run.publish(step)
    run.commit(step)
    run.flush()
    monkeypatch.undo()
    assert "No space left on device" in capsys.readouterr().err
    assert create_trial(str(run.root)).tensor_names() == ["x"]
    assert not list(run.root.rglob("*.tmp*"))
    run.close(end_marker=True)
    (lost,) = read_lost_steps(run.root)
    assert (lost.count, lost.steps) == (1, (3,))


def in_place_of(event, what):
    event.unlink()
    if what == "pipe":
        os.mkfifo(event)
    elif what == "link":
        event.symlink_to("/dev/zero")
    elif what == "other":
        event.write_bytes(b"other")


@pytest.mark.parametrize("what", ["nothing", "pipe", "link", "other"])
def test_what_is_no_more_as_it_was_written_is_not_gone_on_with(run, capsys, what):
    step = opened(run, x=np.ones(3))
    in_place_of(run.root / EVENT, what)
    step.add("y", np.zeros(2))
    run.commit(step)
    assert run.flush()
    assert "cannot write to" in capsys.readouterr().err
    assert run.steps_lost == 1


def test_a_reader_that_goes_on_takes_a_step_again_that_has_changed(run):
    reader = RunReader(run.root)
    step = opened(run, x=np.ones(3))
    assert [found.step for found in reader.new_indexes()] == [3]
    assert not [*reader.new_indexes()]
    step.add("y", np.ones(2))
    run.commit(step)
    later = run.begin_step(4, ModeKeys.TRAIN, 4)
    later.add("x", np.ones(3))
    run.commit(later)
    assert run.flush()
    found = [*reader.new_indexes()]
    assert [one.step for one in found] == [3, 4]
    assert [*found[0].index.payload.tensors.positions] == ["x", "y"]
    assert not [*reader.new_indexes()]
