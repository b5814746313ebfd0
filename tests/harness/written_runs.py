"""Runs that a test writes itself, step by step: in each step one tensor, ``x``, that holds the step's number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.storage.run_writer import RunWriter

COLLECTIONS = '{"collections": {}, "_meta": {"num_workers": 1}}'


def started(folder: Path, worker: str = "worker_0", alone: bool = True, **options: Any) -> RunWriter:
    """Return the writer of a run that has begun."""
    run = RunWriter(str(folder), **options)
    assert run.start(worker, alone) is None
    run.write_collections(COLLECTIONS)
    return run


def save(run: RunWriter, *steps: int) -> None:
    """Hand steps to the disk, which may not have them yet."""
    for step in steps:
        file = run.begin_step(step, ModeKeys.TRAIN, step)
        file.add("x", np.full(3, float(step)))
        run.commit(file)


def saved(run: RunWriter, *steps: int) -> None:
    """Save steps, and wait until the disk has them."""
    save(run, *steps)
    assert run.flush()


def readable(folder: Path) -> list[int]:
    """Return the steps of a run, all of whose values are right."""
    trial = create_trial(str(folder), timeout=0)
    steps = trial.steps(show_incomplete_steps=True)
    assert [float(trial.tensor("x").value(step)[0]) for step in steps] == steps
    return steps
