"""The series of a process that is killed at any moment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness.written_runs import started

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.storage import worker_files


def losses(folder):
    table = create_trial(str(folder), timeout=0).series().get("steps")
    return {} if table is None else dict(zip(table.steps.tolist(), table["series/loss"].tolist(), strict=True))


TESTS = Path(__file__).parents[2]
PROGRAM = """
import sys, time
sys.path.insert(0, {tests!r})
from harness.written_runs import saved, started
from pathlib import Path
from smd_agent.core.modes import ModeKeys
run = started(Path({folder!r}))
saved(run, 0)
step = 0
while True:
    run.series.add("steps", step, ModeKeys.TRAIN, step, ("series/loss", "series/seconds"), (step, time.time()))
    print(step, flush=True)
    step += 1
    time.sleep({pause})
"""


@pytest.mark.parametrize("pause", [0.003, 0.0005])
def test_after_a_kill_every_row_is_whole_and_the_last_one_is_new(tmp_path, pause):
    for number in range(10):
        folder = tmp_path / f"run{number}"
        program = PROGRAM.format(
            tests=str(os.path.join(os.path.dirname(__file__), "../..")), folder=str(folder), pause=pause
        )
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert process.stdout.readline()
        time.sleep(0.05 + 0.37 * number / 10)
        process.send_signal(signal.SIGKILL)
        out, _ = process.communicate()
        last = int(out.split()[-1])
        found = losses(folder)
        assert found == {step: step for step in range(len(found))}
        # The next row may have come, and not have been told.
        assert last <= max(found) <= last + 1


def test_a_run_that_has_rows_has_the_file_without_which_it_cannot_be_read(tmp_path, monkeypatch):
    """However long the writer thread takes for it."""
    replace_file = worker_files.replace_file

    def late(*args):
        time.sleep(0.1)
        replace_file(*args)

    monkeypatch.setattr(worker_files, "replace_file", late)
    folder = tmp_path / "run"
    run = started(folder)
    run.series.add("steps", 0, ModeKeys.TRAIN, 0, ("series/loss",), (0.0,))
    assert losses(folder) == {0: 0.0}
    run.close(end_marker=False)
