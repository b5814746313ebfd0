"""Writers of runs, each of which begins as a program's does, and processes that are killed while they write."""

from __future__ import annotations

import os
import signal

import numpy as np

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.storage.run_writer import RunWriter

COLLECTIONS = '{"collections": {}, "_meta": {"num_workers": 1}}'


def save(writer, step, value=1.0):
    file = writer.begin_step(step, ModeKeys.TRAIN, step)
    file.add("x", np.full(3, value))
    writer.commit(file)
    assert writer.flush()


def start(folder, **options):
    writer = RunWriter(str(folder), **options)
    assert writer.start("worker_0", alone=True) is None
    writer.write_collections(COLLECTIONS)
    return writer


def cut_off(folder, steps=3, value=1.0, leave=lambda folder: None):
    """Have a process save these steps into the folder, and kill it."""
    pid = os.fork()
    if pid == 0:
        try:
            writer = start(folder)
            for step in range(steps):
                save(writer, step, value)
            leave(folder)
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)


def values(folder):
    trial = create_trial(str(folder), timeout=0)
    return [float(trial.tensor("x").value(step)[0]) for step in trial.steps(show_incomplete_steps=True)]


def workers(folder, ranks=2):
    started = [RunWriter(str(folder)) for _ in range(ranks)]
    for rank, writer in enumerate(started):
        assert writer.start(f"worker_{rank}", alone=False) is None
    return started
