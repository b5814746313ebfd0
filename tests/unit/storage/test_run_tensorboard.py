"""TensorBoard's files as a run writes them: by its thread, whole at any time, and never at the cost of the run."""

from __future__ import annotations

import errno
import math
import os
import threading

import numpy as np
import pytest
from harness.written_runs import readable, started

from smd_agent.core.display_collection import settle
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.messages import Event
from smd_agent.formats.series import ABSENT
from smd_agent.formats.tfrecord import FRAME_BYTES, read_record
from smd_agent.storage import atomic_file, run_tensorboard
from smd_agent.storage.run_tensorboard import RunBoard

HOMES = {}
settle(HOMES, "x", [("all", True), ("weights", True), ("losses", True)])


def events_in(path):
    """The messages of a file, all of whose bytes are whole records."""
    data, events, place = path.read_bytes(), [], 0
    while place < len(data):
        payload = read_record(data, place)
        events.append(Event.FromString(bytes(payload)))
        place += len(payload) + FRAME_BYTES
    return events


def steps_in(folder):
    """The steps of which there is a scalar, by file."""
    return [
        sorted({event.step for event in events_in(path) if any(value.tag == "loss" for value in event.summary.value)})
        for path in sorted(folder.rglob("*.tfevents"))
    ]


def begun(tmp_path, folder=None, **options):
    return started(tmp_path / "run", board=RunBoard(folder, HOMES), **options)


def save(run, *steps, mode=ModeKeys.TRAIN):
    for step in steps:
        file = run.begin_step(step, mode, step)
        file.add("x", np.full(3, float(step)))
        file.add("loss", np.float32(step))
        run.commit(file)
    assert run.flush()


def test_a_file_for_each_mode_which_grows(tmp_path):
    run = begun(tmp_path)
    save(run, 0, 1)
    save(run, 2, mode=ModeKeys.EVAL)
    board = tmp_path / "run" / "tensorboard"
    assert sorted(path.name for path in board.iterdir()) == ["EVAL", "TRAIN"]
    assert steps_in(board / "TRAIN") == [[0, 1]]
    (path,) = (board / "TRAIN").iterdir()
    assert path.name == f"000000000000_{os.getpid()}_{os.uname().nodename}.tfevents"
    save(run, 3)
    assert steps_in(board / "TRAIN") == [[0, 1, 3]]
    run.close(end_marker=True)
    assert [value.tag for event in events_in(path) for value in event.summary.value][:2] == ["weights/x", "loss"]
    assert readable(tmp_path / "run") == [0, 1, 2, 3]


def test_the_thread_that_trains_neither_makes_nor_writes_them(tmp_path, monkeypatch):
    run = begun(tmp_path, tmp_path / "board")
    by = {"append": [], "histogram": []}
    append, histogram = atomic_file.GrowingFile.append, run_tensorboard.BoardFiles._records

    def appending(file, content):
        by["append"].append(threading.current_thread().name)
        append(file, content)

    def encoding(files, step):
        by["histogram"].append(threading.current_thread().name)
        return histogram(files, step)

    monkeypatch.setattr(atomic_file.GrowingFile, "append", appending)
    monkeypatch.setattr(run_tensorboard.BoardFiles, "_records", encoding)
    save(run, 0, 1)
    run.close(end_marker=True)
    assert by == {"append": ["smd_agent-writer"] * 3, "histogram": ["smd_agent-writer"] * 2}


def test_values_may_change_as_soon_as_they_are_handed_over(tmp_path):
    run = begun(tmp_path, tmp_path / "board")
    x, loss, mean = np.arange(4.0), np.array([1.0]), np.array([5.0])
    file = run.begin_step(0, ModeKeys.TRAIN, 0)
    file.add("x", x)
    file.add("loss", loss)
    file.add_scalars(("smdebug/reductions/mean/x",), mean)
    x[:] = loss[:] = mean[:] = -1
    run.commit(file)
    run.close(end_marker=True)
    (path,) = (tmp_path / "board" / "TRAIN").iterdir()
    values = {value.tag: value for event in events_in(path) for value in event.summary.value}
    assert values["weights/x"].histo.max == 3
    assert (values["loss"].simple_value, values["weights/x/mean"].simple_value) == (1, 5)


def test_what_is_replaced_is_shown_once(tmp_path):
    run = begun(tmp_path, tmp_path / "board")
    file = run.begin_step(0, ModeKeys.TRAIN, 0)
    tags = ("smdebug/reductions/mean/x", "smdebug/reductions/max/x")
    file.add_scalars(tags, np.array([1.0, 2.0]))
    file.add("loss", np.float32(1))
    file.drop({"loss", tags[0]})
    file.add_scalars(tags[:1], np.array([7.0]))
    run.commit(file)
    run.close(end_marker=True)
    (path,) = (tmp_path / "board" / "TRAIN").iterdir()
    shown = [(value.tag, value.simple_value) for event in events_in(path) for value in event.summary.value]
    assert shown == [("weights/x/max", 2), ("weights/x/mean", 7)]


def test_a_disk_that_is_full_costs_a_step_of_the_board_and_says_so_once(tmp_path, monkeypatch, capsys):
    run = begun(tmp_path, tmp_path / "board")
    save(run, 0)
    write, full = os.write, [True]

    def writing(descriptor, data):
        if full[0] and "/board/" in os.readlink(f"/proc/self/fd/{descriptor}"):
            # Half of it still fits.
            if len(data) > 40:
                return write(descriptor, bytes(data)[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", writing)
    save(run, 1, 2)
    full[0] = False
    save(run, 3)
    run.close(end_marker=True)
    assert steps_in(tmp_path / "board") == [[0, 3]]
    assert readable(tmp_path / "run") == [0, 1, 2, 3]
    said = capsys.readouterr().err.splitlines()
    assert len([line for line in said if "cannot write TensorBoard's files" in line]) == 1


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    run = begun(tmp_path, tmp_path / "file" / "board")
    save(run, 0, 1)
    run.close(end_marker=True)
    assert readable(tmp_path / "run") == [0, 1]
    assert len([line for line in capsys.readouterr().err.splitlines() if "cannot write TensorBoard" in line]) == 1


def test_a_file_that_was_removed_is_begun_anew(tmp_path):
    run = begun(tmp_path, tmp_path / "board")
    save(run, 0)
    (path,) = (tmp_path / "board" / "TRAIN").iterdir()
    path.unlink()
    save(run, 1)
    run.close(end_marker=True)
    assert steps_in(tmp_path / "board") == [[1]]


def test_a_disk_that_is_too_slow_loses_steps_of_the_board_and_no_memory(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(run_tensorboard, "WAITING", 0)
    run = begun(tmp_path, tmp_path / "board")
    stands, goes_on = threading.Event(), threading.Event()
    run._writer.submit(lambda: (stands.set(), goes_on.wait(30)))
    stands.wait(30)
    for step in range(3):
        file = run.begin_step(step, ModeKeys.TRAIN, step)
        file.add("loss", np.float32(step))
        file.add("x", np.full(3, float(step)))
        run.commit(file)
    goes_on.set()
    run.close(end_marker=True)
    assert steps_in(tmp_path / "board") == [[0]]
    assert readable(tmp_path / "run") == [0, 1, 2]
    assert "step 1 and others are not in TensorBoard's files" in capsys.readouterr().err


def test_a_second_run_has_a_folder_of_its_own(tmp_path):
    for _ in range(2):
        run = begun(tmp_path, tmp_path / "board")
        save(run, 0)
        run.close(end_marker=True)
    assert sorted(path.name for path in (tmp_path / "board").iterdir()) == ["TRAIN", "run-2"]


@pytest.mark.parametrize("worker", ["worker_1", "/job:localhost/replica:0/task:0/device:GPU:1"])
def test_further_workers_have_folders_below(tmp_path, worker):
    run = begun(tmp_path, worker=worker, alone=False)
    save(run, 0)
    run.close(end_marker=True)
    (folder,) = (tmp_path / "run" / "tensorboard" / "TRAIN").iterdir()
    assert folder.is_dir()
    assert steps_in(folder) == [[0]]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("worker", ["worker_0", "worker_1"])
def test_a_worker_that_begins_again_removes_what_an_earlier_run_has_left_of_it(tmp_path, named, worker):
    board = tmp_path / "board" if named else tmp_path / "run" / "tensorboard"
    others = {"worker_0": "worker_1", "worker_1": "worker_0"}
    for each, steps in ((others[worker], (0,)), (worker, (0, 1, 2))):
        pid = os.fork()
        if pid == 0:
            # Killed, with its claim in place.
            save(begun(tmp_path, board if named else None, worker=each, alone=False), *steps)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    strangers = [board / "TRAIN" / name for name in ("events.out.tfevents.1", "000000000007_1_elsewhere.tfevents")]
    for path in strangers:
        path.write_bytes(b"")
    run = begun(tmp_path, board if named else None, worker=worker, alone=False)
    save(run, 0)
    run.close(end_marker=True)
    # In the run's own folder everything of the first worker is the run's.
    kept = strangers if named or worker == "worker_1" else strangers[:1]
    assert [path for path in strangers if path.exists()] == kept
    assert sorted(steps_in(board)) == [[]] * (len(kept) - 1) + [[0], [0]]


def test_no_link_in_the_runs_folder_is_followed(tmp_path, capsys):
    (tmp_path / "elsewhere").mkdir()
    run = begun(tmp_path)
    (tmp_path / "run" / "tensorboard").symlink_to(tmp_path / "elsewhere")
    save(run, 0)
    run.close(end_marker=True)
    assert not list((tmp_path / "elsewhere").iterdir())
    assert "is a link" in capsys.readouterr().err


def shown(folder, tag="series/loss"):
    """The numbers of a tag by step, in the order in which they were written."""
    events = [event for path in sorted(folder.rglob("*.tfevents")) for event in events_in(path)]
    return {event.step: value.simple_value for event in events for value in event.summary.value if value.tag == tag}


def add_row(run, step, loss=0.5):
    run.series.add("steps", step, ModeKeys.TRAIN, step, ("series/loss", "series/rate"), (loss, ABSENT))


def test_rows_of_the_series_are_shown_without_a_saved_step(tmp_path):
    run = begun(tmp_path, tmp_path / "board")
    for step in range(3):
        add_row(run, step, step / 2)
    run.close(end_marker=True)
    assert shown(tmp_path / "board") == {0: 0.0, 1: 0.5, 2: 1.0}
    assert not shown(tmp_path / "board", "series/rate")


def test_of_a_long_run_some_rows_are_shown_and_the_first_that_is_not_finite(tmp_path, monkeypatch):
    monkeypatch.setattr(run_tensorboard, "ROWS_BYTES", 20_000)
    run = begun(tmp_path, tmp_path / "board")
    for step in range(3_000):
        add_row(run, step, math.nan if step == 2_777 else 0.5)
    run.close(end_marker=True)
    found = shown(tmp_path / "board")
    assert 150 < len(found) < 400
    assert math.isnan(found[2_777])


def test_rows_are_shown_while_the_training_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(run_tensorboard, "ROWS_SECONDS", 0.0)
    run = begun(tmp_path, tmp_path / "board")
    for step in range(3):
        add_row(run, step)
    assert run.flush()
    assert shown(tmp_path / "board").keys() == {0, 1, 2}
    run.close(end_marker=True)
