"""A disk that is slow or full, and a folder that goes away: what is lost is counted and noted."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from harness.written_runs import COLLECTIONS, readable, saved, started

from smd_agent import create_trial, descriptors
from smd_agent.core.modes import ModeKeys
from smd_agent.formats.notes import Lost
from smd_agent.storage import step_output
from smd_agent.storage.worker_files_reader import read_lost_steps
from smd_agent.storage.writer_thread import BLOCK_BYTES, Writer


@pytest.fixture
def run(tmp_path):
    writer = started(tmp_path / "run")
    yield writer
    writer.close(end_marker=False)


@pytest.mark.parametrize("call", [0, 1, 2])
def test_a_step_of_which_a_write_has_not_even_begun_is_not_listed(tmp_path, monkeypatch, capsys, call):
    run = started(tmp_path / "run", budget_bytes=2 * BLOCK_BYTES)
    saved(run, 0)
    write, calls = step_output.StepOutput.write, []

    def failing(output, blocks, written):
        calls.append(blocks)
        if len(calls) == call + 1:
            for block in blocks:
                written(block)
            raise MemoryError
        write(output, blocks, written)

    monkeypatch.setattr(step_output.StepOutput, "write", failing)
    file = run.begin_step(1, ModeKeys.TRAIN, 1)
    file.add("x", np.full(3, 1.0))
    file.add("y", np.ones(2 * BLOCK_BYTES + 1000, np.uint8))
    run.commit(file)
    assert run.flush()
    assert len(calls) == 3
    saved(run, 2)
    run.close(end_marker=True)
    assert readable(tmp_path / "run") == [0, 2]
    assert run.steps_lost == 1
    assert "cannot write to" in capsys.readouterr().err


@pytest.fixture
def full(tmp_path, monkeypatch):
    """A disk that is full: a set of words; no file below the test's folder that has one in its name can be made."""
    words = set()
    open_file = os.open

    def opening(path, flags, mode=0o777, *, dir_fd=None):
        if flags & os.O_CREAT:
            folder = "" if dir_fd is None else os.readlink(f"/proc/self/fd/{dir_fd}")
            whole = os.path.join(folder, os.fspath(path))
            if whole.startswith(str(tmp_path)) and any(word in whole for word in words):
                raise OSError(errno.ENOSPC, "No space left on device", whole)
        return open_file(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(descriptors, "_open", opening)
    return words


def assert_both_are_kept(run, other):
    """End two runs, of which the first has gone beside the other: they have steps 1 and 7."""
    for writer in (run, other):
        writer.close(end_marker=True)
    assert run.root == other.root.with_name("run-2")
    assert (readable(run.root), readable(other.root)) == ([1], [7])


# Slow.


def test_a_disk_that_is_slow_and_moves_loses_nothing(tmp_path, monkeypatch, capsys):
    run = started(tmp_path / "run")
    run.flush()
    run._writer = Writer(on_failure=run._at.failures.write_failed, stall_seconds=0.3)
    write = os.write

    def slow(descriptor, data):
        time.sleep(len(data) * 0.12 / (1 << 20))
        return write(descriptor, data)

    monkeypatch.setattr(step_output.os, "write", slow)
    file = run.begin_step(0, ModeKeys.TRAIN, 0)
    file.add("x", np.zeros(3 * BLOCK_BYTES, np.uint8))
    run.commit(file)
    run.close(end_marker=True)
    assert "takes no more data" not in capsys.readouterr().err
    assert create_trial(str(run.root)).tensor("x").value(0).nbytes == 3 * BLOCK_BYTES
    assert not [*run.root.rglob("*.tmp")]


# Gone.


@pytest.mark.parametrize("how", ["removed", "moved"])
def test_a_folder_that_goes_away_is_made_again_and_can_be_read(run, tmp_path, how, capsys):
    saved(run, 0, 1, 2)
    shutil.rmtree(run.root) if how == "removed" else run.root.rename(tmp_path / "elsewhere")
    saved(run, 3)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "removed or moved" in line]
    assert "the 3 steps saved so far" in line
    assert f"saving goes on in {run.root}" in line
    saved(run, 4)
    run.close(end_marker=True)
    assert readable(run.root) == [3, 4]
    assert "saved 2 steps" in run.summary()
    assert "3 more are gone" in run.summary()
    assert read_lost_steps(run.root) == [Lost("worker_0", 0, 3, (), "")]
    assert not (run.root / "claim.smd").exists()
    if how == "moved":
        assert readable(tmp_path / "elsewhere") == [0, 1, 2]


@pytest.mark.parametrize("how", ["moved", "unmounted before", "unmounted"])
def test_a_folder_that_goes_away_while_a_step_is_written_gets_no_index_without_values(run, tmp_path, monkeypatch, how):
    saved(run, 0)
    put_in_place = step_output.NewFile.put_in_place

    def moving(file):
        if how != "unmounted before":
            put_in_place(file)
        if not (tmp_path / "elsewhere").exists():
            run.root.rename(tmp_path / "elsewhere")
            if how != "moved":
                run.root.mkdir()
        if how == "unmounted before":
            put_in_place(file)

    with monkeypatch.context() as patched:
        patched.setattr(step_output.NewFile, "put_in_place", moving)
        saved(run, 1)
    saved(run, 2)
    run.close(end_marker=True)
    # What is left of the step that went to two folders is left alone.
    assert run.root == tmp_path / ("run" if how == "moved" else "run-2")
    assert readable(run.root) == [2]
    assert not [*(tmp_path / "run").glob("index/*/00000000000[01]*")]
    assert readable(tmp_path / "elsewhere") == [0]


def test_a_folder_that_another_run_has_taken_is_left_to_it(run, tmp_path):
    saved(run, 0)
    run.root.rename(tmp_path / "elsewhere")
    other = started(tmp_path / "run")
    saved(other, 7)
    saved(run, 1)
    assert_both_are_kept(run, other)


def test_a_folder_that_goes_away_before_the_end_is_not_made_for_an_end_mark(run, capsys):
    saved(run, 0)
    shutil.rmtree(run.root)
    run.close(end_marker=True)
    assert not run.root.exists()
    assert "the 1 steps" not in (said := capsys.readouterr().err)
    assert "the step saved so far is not there any more" in said
    assert run.summary() == "saved 0 steps (0 values, 0 bytes); 1 more is gone with its folder"


def test_a_run_that_is_removed_after_its_end_is_nothing_to_tell(run, capsys):
    saved(run, 0)
    run.close(end_marker=True)
    shutil.rmtree(run.root)
    run.close(end_marker=True)
    assert not run.root.exists()
    assert capsys.readouterr().err == ""


def test_a_claim_file_that_is_removed_is_made_again(run, capsys):
    saved(run, 0)
    (run.root / "claim.smd").unlink()
    saved(run, 1)
    assert (run.root / "claim.smd").exists()
    run.close(end_marker=True)
    assert readable(run.root) == [0, 1]
    assert capsys.readouterr().err == ""


def test_a_folder_that_cannot_be_made_again_costs_the_steps_until_it_can(run, full, capsys):
    saved(run, 0)
    shutil.rmtree(run.root)
    full.add("claim")
    saved(run, 1, 2)
    full.clear()
    saved(run, 3)
    run.close(end_marker=True)
    assert readable(run.root) == [3]
    assert capsys.readouterr().err.count("removed or moved") == 1
    (lost,) = read_lost_steps(run.root)
    assert (lost.steps, lost.gone) == ((1, 2), 1)


# Full.


def test_a_disk_that_is_full_at_the_very_start_costs_the_steps_until_it_is_not(tmp_path, full, capsys):
    full.add("claim")
    run = started(tmp_path / "run")
    saved(run, 0, 1)
    full.clear()
    saved(run, 2, 3)
    run.close(end_marker=True)
    assert capsys.readouterr().err.count("No space left") == 1
    assert readable(run.root) == [2, 3]
    assert (run.saved.steps, run.steps_lost) == (2, 2)
    assert read_lost_steps(run.root) == [Lost("worker_0", 2, 0, (0, 1), "No space left on device")]


def test_a_disk_that_is_full_at_the_start_does_not_give_another_run_s_folder_away(tmp_path, full):
    other = started(tmp_path / "run")
    saved(other, 7)
    full.add("run-")
    run = started(tmp_path / "run")
    saved(run, 0)
    full.clear()
    saved(run, 1)
    assert_both_are_kept(run, other)


def test_what_was_lost_is_noted_in_the_run_while_it_goes_on(run, full):
    saved(run, 0)
    full.add("events")
    saved(run, 1)
    full.add("lost")
    saved(run, 2)
    full.clear()
    saved(run, 3)
    (lost,) = read_lost_steps(run.root)
    assert (lost.steps, lost.reason) == ((1, 2), "No space left on device")
    assert readable(run.root) == [0, 3]


def test_a_step_whose_index_cannot_be_written_leaves_no_file(run, full):
    full.add("/index/")
    saved(run, 0)
    assert not [*run.root.rglob("*.tfevents*")]
    assert run.steps_lost == 1


def test_a_claim_that_cannot_be_removed_is_given_up(run, monkeypatch, tmp_path):
    saved(run, 0)

    def refuse(path, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        run.close(end_marker=False)
    assert "saved 1 step " in run.summary()
    shutil.rmtree(run.root / "index")
    assert started(tmp_path / "run").root == tmp_path / "run"


def test_only_steps_are_counted_as_lost_steps(run, full):
    saved(run, 0)
    full.update(("events", "collections", "training_job_end"))
    saved(run, 1)
    run.write_collections(COLLECTIONS.replace("1}", "2}"))
    run.close(end_marker=True)
    assert run.steps_lost == 1
    assert "1 could not be written" in run.summary()


def test_a_run_without_losses_has_no_file_of_them(run):
    saved(run, 0)
    run.close(end_marker=True)
    assert not (run.root / "lost").exists()
    assert read_lost_steps(run.root) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '{"steps": 3, "count": 1, "gone": 0, "reason": ""}', "\xff"])
def test_a_damaged_note_of_what_was_lost_is_left_out(tmp_path, text):
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost/worker_0.json").write_text(text, encoding="latin-1")
    good = {"count": 1, "gone": 0, "steps": [5], "reason": "x"}
    (tmp_path / "lost/worker_1.json").write_text(json.dumps(good))
    assert [lost.worker for lost in read_lost_steps(tmp_path)] == ["worker_1"]
