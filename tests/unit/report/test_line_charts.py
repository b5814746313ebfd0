"""Losses, metrics and settings as lines."""

from __future__ import annotations

import numpy as np
from harness.written_runs import started

from smd_agent.analysis.trial import create_trial
from smd_agent.core.collection_manager import CollectionManager
from smd_agent.core.modes import ModeKeys
from smd_agent.report import line_charts
from smd_agent.report.collecting import collect


def lines_of(folder, steps):
    """Write a run with so many steps, each a mode and numbers by name, and gather its lines."""
    run, manager = started(folder), CollectionManager()
    for name, pattern in {"losses": "loss$", "metrics": "-auc$", "optimizer": "^optimizer/"}.items():
        manager.get(name).include(pattern)
    run.write_collections(manager.to_json())
    counts = {}
    for step, (mode, numbers) in enumerate(steps):
        file = run.begin_step(step, mode, counts.setdefault(mode, 0))
        counts[mode] += 1
        for name, value in numbers.items():
            file.add(name, np.array(value))
        run.commit(file)
        assert run.flush()
    run.close(True)
    return collect(create_trial(str(folder), timeout=0), []).lines


def test_modes_are_lines_of_one_chart(tmp_path):
    steps = [(ModeKeys.TRAIN, {"loss": 3.0}), (ModeKeys.EVAL, {"loss": 4.0}), (ModeKeys.TRAIN, {"loss": 2.0})]
    (chart,) = lines_of(tmp_path, steps).charts("losses")
    assert chart["title"] == "loss"
    train, evaluated = chart["lines"]
    assert (train["label"], train["steps"], train["values"]) == ("TRAIN", [0, 2], [3, 2])
    assert (evaluated["label"], evaluated["steps"], evaluated["values"]) == ("EVAL", [1], [4])


def test_a_loss_of_each_sample_is_drawn_by_its_mean(tmp_path):
    steps = [(ModeKeys.TRAIN, {"loss": np.array([step, step + 3.0])}) for step in range(3)]
    (chart,) = lines_of(tmp_path, steps).charts("losses")
    assert (chart["title"], chart["lines"][0]["values"]) == ("loss, mean", [1.5, 2.5, 3.5])


def test_sets_are_lines_of_one_chart(tmp_path):
    step = (ModeKeys.GLOBAL, {"train-auc": 0.9, "test-auc": 0.8})
    (chart,) = lines_of(tmp_path, [step] * 3).charts("metrics")
    assert (chart["title"], {line["label"] for line in chart["lines"]}) == ("auc", {"train", "test"})


def test_what_is_not_finite_is_text(tmp_path):
    steps = [(ModeKeys.TRAIN, {"loss": value}) for value in (1.0, np.nan, np.inf, -np.inf)]
    (chart,) = lines_of(tmp_path, steps).charts("losses")
    assert chart["lines"][0]["values"] == [1.0, "nan", "inf", "-inf"]


def test_spikes_and_nan_stay_where_steps_share_a_point(tmp_path, monkeypatch):
    monkeypatch.setattr(line_charts, "MOST_POINTS", 4)
    values = [1.0] * 16
    values[5], values[9] = 100.0, np.nan
    (chart,) = lines_of(tmp_path, [(ModeKeys.TRAIN, {"loss": value}) for value in values]).charts("losses")
    assert (chart["lines"][0]["steps"], chart["lines"][0]["values"]) == ([0, 4, 8, 12], [1.0, 100.0, "nan", 1.0])


def test_settings_that_stay_are_told_once(tmp_path):
    steps = [(ModeKeys.TRAIN, {"optimizer/Adam/lr": 0.1 / (n + 1), "optimizer/Adam/eps": 1e-8}) for n in range(3)]
    found = lines_of(tmp_path, steps)
    assert found.constants() == {"Adam/eps": 1e-8}
    assert [chart["title"] for chart in found.charts("optimizer")] == ["lr"]
    assert found.left_out("optimizer") == 0


def test_more_charts_than_there_is_room_for(tmp_path):
    names = {f"head{number}loss": 1.0 for number in range(line_charts.MOST_CHARTS + 3)}
    found = lines_of(tmp_path, [(ModeKeys.TRAIN, names)] * 2)
    assert (len(found.charts("losses")), found.left_out("losses")) == (line_charts.MOST_CHARTS, 3)
