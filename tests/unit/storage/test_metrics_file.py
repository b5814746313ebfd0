"""Lines for SageMaker's metrics: of what is saved, by the writer's thread, whole, and never at the cost of the run."""

from __future__ import annotations

import errno
import json
import os
import threading
import time

import numpy as np
import pytest
from harness.written_runs import readable, started

from smd_agent.core.modes import ModeKeys
from smd_agent.storage.metrics_file import MetricsFile


def begun(tmp_path, folder="metrics"):
    return started(tmp_path / "run", metrics=MetricsFile(str(tmp_path / folder), {"loss", "many"}.__contains__))


def save(run, *steps, mode=ModeKeys.TRAIN, **values):
    for step in steps:
        file = run.begin_step(step, mode, step // 2)
        file.add("x", np.full(3, float(step)))
        for name, value in (values or {"loss": step}).items():
            file.add(name, np.asarray(value))
        run.commit(file)
    assert run.flush()


def lines(tmp_path):
    return [json.loads(line) for line in (tmp_path / "metrics" / f"{os.getpid()}.json").read_text().splitlines()]


def test_a_line_for_each_number(tmp_path):
    run, before = begun(tmp_path), time.time()
    save(run, 4)
    save(run, 6, mode=ModeKeys.EVAL, loss=[[1, 2], [3, 8]], other=1.0, many=np.array([1.5], np.float16))
    found = lines(tmp_path)
    assert [list(line) for line in found] == [["MetricName", "Value", "Timestamp", "IterationNumber"]] * 3
    assert all(before <= line.pop("Timestamp") <= time.time() for line in found)
    assert [tuple(line.values()) for line in found] == [
        ("loss_TRAIN", 4.0, 2),
        ("loss_EVAL", 3.5, 3),
        ("many_EVAL", 1.5, 3),
    ]
    run.close(end_marker=True)
    # What comes after the end goes on in the same file, as smexperiments has it.
    save(run, 8)
    assert len(lines(tmp_path)) == 4


def test_values_may_change_and_be_replaced(tmp_path):
    run, loss = begun(tmp_path), np.array([1.0])
    file = run.begin_step(0, ModeKeys.TRAIN, 0)
    file.add("loss", loss, wall_time=time.time() - 60)
    file.add("many", np.arange(3.0))
    file.drop({"many"})
    loss[:] = 9
    run.commit(file)
    run.close(end_marker=True)
    (line,) = lines(tmp_path)
    assert (line["MetricName"], line["Value"]) == ("loss_TRAIN", 1)
    assert 50 < time.time() - line["Timestamp"] < 70


def test_what_sagemaker_does_not_take_is_said_once(tmp_path, capsys):
    run = begun(tmp_path)
    save(run, 0, 1, loss=np.nan)
    file = run.begin_step(2, ModeKeys.TRAIN, 2)
    file.add("many", np.ones(1), wall_time=1000.0)
    run.commit(file)
    save(run, 3, loss=1j, many=np.zeros((0, 2)))
    assert run.flush()
    assert not (tmp_path / "metrics").exists()
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "smd_agent: loss is nan in step 0: SageMaker's metrics are finite numbers",
        "smd_agent: many has a timestamp that SageMaker's metrics do not take: two weeks ago at most, not to come",
    ]


def test_the_thread_that_trains_does_not_write_them(tmp_path, monkeypatch):
    run, by = begun(tmp_path), []
    write = os.write

    def writing(descriptor, data):
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(f"/{os.getpid()}.json"):
            by.append(threading.current_thread().name)
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", writing)
    save(run, 0, 1)
    run.close(end_marker=True)
    assert by == ["smd_agent-writer"] * 2


def test_a_folder_that_cannot_be_written_is_said_once_and_the_run_goes_on(tmp_path, capsys):
    (tmp_path / "metrics").write_text("a file")
    run = begun(tmp_path)
    save(run, 0, 1)
    run.close(end_marker=True)
    assert readable(tmp_path / "run") == [0, 1]
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "metrics" in line]
    assert line.startswith(f"smd_agent: cannot write SageMaker's metrics to {tmp_path / 'metrics'} (")


def test_no_link_is_followed(tmp_path):
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / f"{os.getpid()}.json").symlink_to(tmp_path / "victim")
    save(begun(tmp_path), 0)
    assert not (tmp_path / "victim").exists()


def test_a_full_disk_tears_one_line_at_most(tmp_path, monkeypatch):
    run = begun(tmp_path)
    save(run, 0)
    write, full = os.write, [True]

    def writing(descriptor, data):
        if full[0] and "/metrics/" in os.readlink(f"/proc/self/fd/{descriptor}"):
            if len(data) > 40:
                return write(descriptor, bytes(data)[:40])
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", writing)
    save(run, 1, loss=1.0 + 1e-16)
    full[0] = False
    save(run, 2, 3)
    text = (tmp_path / "metrics" / f"{os.getpid()}.json").read_text().splitlines()
    assert [json.loads(line)["Value"] for line in text if line.endswith("}")][-2:] == [2, 3]
    assert len([line for line in text if not line.endswith("}")]) <= 1


def test_a_file_that_somebody_has_removed_is_begun_anew(tmp_path):
    run = begun(tmp_path)
    save(run, 0, 1)
    (tmp_path / "metrics" / f"{os.getpid()}.json").unlink()
    save(run, 2)
    assert [line["Value"] for line in lines(tmp_path)] == [2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_has_a_file_of_its_own(tmp_path):
    run = begun(tmp_path)
    save(run, 0)
    child = os.fork()
    if not child:
        run.begin_anew()
        run.start("worker_0", alone=True)
        save(run, 1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    save(run, 2)
    assert [line["Value"] for line in lines(tmp_path)] == [0, 2]
    assert json.loads((tmp_path / "metrics" / f"{child}.json").read_text())["Value"] == 1
