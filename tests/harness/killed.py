"""Trainings that are killed at a random moment, and the rows of the series that are found afterwards."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import numpy as np

from harness.runner import environment
from smd_agent import create_trial

# In a script: ``tell(step, number)`` after each step, where a kill leaves it.
TELL = """
import os, sys, time
_told = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def tell(step, number):
    os.write(_told, f"{step} {time.time()!r} {float(number)!r}\\n".encode())
"""
# The rows of so much time may be on their way to the disk, however short the steps are.
_ON_ITS_WAY = 0.3


def assert_series_survives(folder, script, *, name="series/loss", late=1, relative=0.0, times=5):
    """Kill a script several times and look at what there is: all rows but the last, with the numbers that it told.

    Args:
        folder: for scripts and runs.
        script: ends by being killed; it has ``tell``.
        name: of the numbers that it tells.
        late: how many steps the last row may be behind.
        relative: by how much numbers may differ.
        times: how often.
    """
    path = folder / "training.py"
    path.write_text(TELL + script)
    for number in range(times):
        told, run = folder / f"told_{number}", folder / f"run_{number}"
        moment = random.Random(number).uniform(5, 120)
        command = [sys.executable, "-m", "smd_agent", "--every", "50", "--out", str(run), str(path), str(told)]
        with subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE) as process:
            while process.poll() is None and (not told.exists() or len(told.read_bytes().splitlines()) < moment):
                time.sleep(0.002)
            time.sleep(random.Random(number).uniform(0, 0.01))
            killed_at = time.time()
            process.kill()
            assert process.wait() == -9, process.stderr.read().decode()
        _look(told, create_trial(str(run)).series()["steps"], killed_at, name, late, relative)


def _look(told, table, killed_at, name, late, relative):
    lines = [line.split() for line in told.read_text().splitlines()]
    expected = {int(step): float(number) for step, _, number in lines}
    settled = [int(step) for step, at, _ in lines if float(at) < killed_at - _ON_ITS_WAY]
    rows = dict(zip(table.steps.tolist(), table[name].tolist(), strict=True))
    assert [*rows] == [*range(len(rows))]
    assert len(rows) > max(settled, default=0) - late, (len(rows), settled[-1:], lines[-1])
    common = [step for step in rows if step in expected]
    np.testing.assert_allclose([rows[step] for step in common], [expected[step] for step in common], rtol=relative)
