"""The folder of a training that goes on from a checkpoint: its run goes on there, without the steps that are redone."""

from __future__ import annotations

import os
import signal

import pytest
from harness.run_writers import cut_off, save, start, values, workers

from smd_agent.storage.folder_choice import Continuation, is_folder_of
from smd_agent.storage.run_writer import RunWriter
from smd_agent.storage.worker_files_reader import read_lost_steps


def go_on(folder, after, worker="worker_0", alone=True, root=None):
    writer = RunWriter(str(folder), continued=Continuation(root or folder, after))
    assert writer.start(worker, alone=alone) is None
    return writer


@pytest.mark.parametrize("ended", [True, False])
def test_one_that_goes_on_stays_in_its_folder_and_makes_the_later_steps_anew(tmp_path, capsys, ended):
    folder = tmp_path / "run"
    cut_off(folder, steps=6, leave=lambda folder: ended and (folder / "training_job_end.ts").touch())
    (folder / "lost").mkdir()
    (folder / "lost/worker_0.json").write_text('{"count": 2, "gone": 0, "steps": [1, 5], "reason": "full"}')
    writer = go_on(folder, after=2)
    assert (writer.root, writer.relocated_because, writer.steps_lost) == (folder, None, 1)
    assert not (folder / "training_job_end.ts").exists()
    save(writer, 3, 2.0)
    assert values(folder) == [1.0, 1.0, 1.0, 2.0]
    assert not (folder / "events/000000000005/000000000005_worker_0.tfevents").exists()
    assert f"3 steps from 3 on are removed from {folder}: the training makes them anew" in capsys.readouterr().err
    assert [lost.steps for lost in read_lost_steps(folder)] == [(1,)]
    writer.close(end_marker=True)
    assert (folder / "training_job_end.ts").exists()


def test_what_it_goes_on_with_may_be_beside_the_named_folder(tmp_path):
    start(tmp_path / "run")
    cut_off(tmp_path / "run-2", steps=3)
    writer = go_on(tmp_path / "run", after=1, root=tmp_path / "run-2")
    assert writer.root == tmp_path / "run-2"
    assert "goes on" in writer.relocated_because
    assert is_folder_of(tmp_path / "run-2", tmp_path / "run")
    assert is_folder_of(tmp_path / "run" / "run-3", tmp_path / "run")
    assert not is_folder_of(tmp_path / "running-2", tmp_path / "run")
    assert not is_folder_of(tmp_path / "run-x", tmp_path / "run")


def test_what_another_process_writes_is_not_gone_on_with(tmp_path):
    other = start(tmp_path / "run")
    save(other, 0)
    save(other, 1)
    assert go_on(tmp_path / "run", after=0).root == tmp_path / "run-2"
    assert values(tmp_path / "run") == [1.0, 1.0]


def test_where_its_folder_has_gone_it_begins_one(tmp_path):
    writer = go_on(tmp_path / "run", after=5)
    assert (writer.root, writer.relocated_because) == (tmp_path / "run", None)


def test_each_of_several_workers_that_go_on_removes_its_own_later_steps_once(tmp_path):
    pid = os.fork()
    if pid == 0:
        for writer in workers(tmp_path / "run"):
            for step in range(4):
                save(writer, step)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    # The ranks meet after the first step.
    first = go_on(tmp_path / "run", after=1)
    save(first, 2, 2.0)
    first.leave()
    assert first.start("worker_0", alone=False) is None
    second = go_on(tmp_path / "run", after=1, worker="worker_1", alone=False)
    save(second, 2, 2.0)
    assert {first.root, second.root} == {tmp_path / "run"}
    assert values(tmp_path / "run") == [1.0, 1.0, 2.0]
    left = sorted(path.name for path in (tmp_path / "run/index").rglob("*.json"))
    assert left == [f"{step:012d}_worker_{rank}.json" for step in range(3) for rank in range(2)]
