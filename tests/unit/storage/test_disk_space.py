"""The line on what a run will take on disk."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from smd_agent.core.collection import Collection
from smd_agent.core.modes import ModeKeys
from smd_agent.core.save_config import SaveConfig
from smd_agent.core.save_plan import SavePlan
from smd_agent.storage import disk_space
from smd_agent.storage.run_writer import RunWriter


@pytest.mark.parametrize(
    "arguments, line",
    [
        (
            (217_000_000, 17, 80 * 10**9),
            "a saved step takes 217.0 MB on disk, the first 1,000 steps 3.7 GB; 80.0 GB are free",
        ),
        (
            (217_000_000, 17, 10**9),
            "a saved step takes 217.0 MB on disk, the first 1,000 steps 3.7 GB, and 1.0 GB are free, which "
            "5 saved steps fill",
        ),
        ((2 * 10**6, 1, 10**9), "a saved step takes 2.0 MB on disk; 1.0 GB are free"),
        ((2 * 10**6, 1000, None), "a saved step takes 2.0 MB on disk, the first 1,000 steps 2.0 GB"),
    ],
)
def test_the_line(arguments, line):
    assert disk_space.forecast(*arguments) == line


def commit(run, step, size, plan):
    file = run.begin_step(step, ModeKeys.TRAIN, step)
    file.add("t", np.zeros(size, np.uint8))
    run.commit(file, plan.steps_among)


@pytest.mark.parametrize("free", [10**12, 10**7])
def test_it_is_said_once_with_the_first_large_step(tmp_path, capsys, monkeypatch, free):
    monkeypatch.setattr(disk_space.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    often, early = SaveConfig(save_interval=100), SaveConfig(save_interval=50, end_step=200)
    names = {"weights": often, "gradients": early}
    plan = SavePlan([Collection(name, ["."], save_config=config) for name, config in names.items()])
    assert plan.steps_among(ModeKeys.TRAIN, 1000) == 12
    assert plan.steps_among(ModeKeys.EVAL, 1000) == 10
    run = RunWriter(str(tmp_path / "run"))
    assert run.start("worker_0", alone=True) is None
    commit(run, 0, 1000, plan)
    run.flush()
    assert capsys.readouterr().err == ""
    for step in (50, 100):
        commit(run, step, 2 * 10**6, plan)
    run.close(end_marker=True)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("smd_agent: a saved step takes 2.0 MB on disk, the first 1,000 steps 24.0 MB")
    assert line.endswith("10.0 MB are free, which 5 saved steps fill" if free == 10**7 else "; 1.0 TB are free")


def test_a_folder_that_cannot_be_asked_costs_the_free_space_alone(tmp_path, capsys):
    disk_space.tell_forecast(3 * 10**6, 4, lambda: tmp_path / "missing")
    assert capsys.readouterr().err == "smd_agent: a saved step takes 3.0 MB on disk, the first 1,000 steps 12.0 MB\n"
