"""What stands in the pictures: rows, columns, pooled steps, several workers."""

from __future__ import annotations

import numpy as np
import pytest
from harness.pages import opened
from harness.rule_runs import written

from smd_agent.core.modes import ModeKeys
from smd_agent.report import heatmaps
from smd_agent.report.collecting import collect
from smd_agent.report.heatmaps import ABSENT
from smd_agent.report.line_charts import Columns


def gradient(l2, nans=0.0, infs=0.0, zeros=0.0, size=10):
    return {"l2": l2, "nan_count": nans, "inf_count": infs, "zero_share": zeros, "shape": (size,)}


def grid_of(collected, key):
    (found,) = [grid for grid in collected.grids if grid.kind.key == key]
    return found


def test_columns_are_shared_where_steps_are_too_many():
    columns = Columns(range(0, 25), 10)
    assert (columns.per_column, columns.steps) == (3, [*range(0, 25, 3)])
    assert [columns.place(step) for step in (0, 2, 3, 24, 25)] == [0, 0, 1, 8, None]


def test_norms_by_tensor_and_step(tmp_path):
    steps = [{"gradient/a": gradient(step + 1), "a.weight": gradient(2), "update_ratio/a": 0.5} for step in range(4)]
    collected = collect(written(tmp_path, steps), [])
    assert grid_of(collected, "gradient_norm").values.tolist() == [[1, 2, 3, 4]]
    assert grid_of(collected, "weight_norm").values.tolist() == [[2] * 4]
    assert grid_of(collected, "update_ratio").values.tolist() == [[0.5] * 4]
    assert grid_of(collected, "zero_share").values.tolist() == [[0] * 4]
    assert collected.non_finite.names == []


def test_spikes_and_nan_stay_where_steps_share_a_column(tmp_path, monkeypatch):
    monkeypatch.setattr(heatmaps, "MOST_COLUMNS", 10)
    steps = [{"gradient/a": gradient(1.0), "gradient/b": gradient(1.0)} for _ in range(40)]
    steps[17]["gradient/a"] = gradient(1e6)
    steps[33]["gradient/b"] = gradient(np.nan, nans=5)
    collected = collect(written(tmp_path, steps), [])
    values = grid_of(collected, "gradient_norm").values
    assert values[0].tolist() == [1, 1, 1, 1, 1e6, 1, 1, 1, 1, 1]
    assert np.flatnonzero(np.isnan(values[1])).tolist() == [8]
    assert collected.non_finite.names == ["gradient/b"]
    assert collected.non_finite.values[0, 8] == 0.5
    assert (np.delete(collected.non_finite.values[0], 8) == ABSENT).all()


def test_steps_of_evaluation_are_no_columns_of_gradients(tmp_path):
    steps = [{"gradient/a": gradient(1.0)}, {"a.weight": gradient(1.0)}, {"gradient/a": gradient(1.0)}]
    collected = collect(written(tmp_path, steps, [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.TRAIN]), [])
    assert grid_of(collected, "gradient_norm").columns.steps == [0, 2]
    assert [grid.kind.key for grid in collected.grids] == ["gradient_norm", "zero_share"]


def test_tensors_that_something_was_found_on_are_shown_where_there_are_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(heatmaps, "MOST_ROWS", 3)
    step = {f"gradient/p{number}.weight": gradient(1.0) for number in range(9)}
    collected = collect(written(tmp_path, [step] * 3), ["p7.weight", "gradient/p4.weight"])
    found = grid_of(collected, "gradient_norm")
    assert found.names == ["gradient/p0.weight", "gradient/p4.weight", "gradient/p7.weight"]
    assert found.left_out == 6


def test_the_share_is_not_known_of_a_norm_alone(tmp_path):
    collected = collect(written(tmp_path, [{"gradient/a": {"l2": value}} for value in (1.0, np.inf, 2.0)]), [])
    assert collected.non_finite.names == ["gradient/a"]
    assert np.isnan(collected.non_finite.values[0, 1])


@pytest.mark.parametrize(
    "name, parameter",
    [
        ("gradient/Net_fc.weight", "Net_fc.weight"),
        ("gradients/sequential/fc/kernelGrad", "sequential/fc/kernel"),
        ("update_ratio/Net_fc.weight", "Net_fc.weight"),
        ("update/Net_fc.weight", "Net_fc.weight"),
        ("fc/weights/sequential/fc/kernel:0", "sequential/fc/kernel"),
        ("Net_fc.weight", "Net_fc.weight"),
        ("gradient/", "gradient/"),
    ],
)
def test_names_of_one_parameter(name, parameter):
    assert heatmaps.parameter_of(name) == parameter


def test_a_run_without_steps(tmp_path):
    collected = collect(written(tmp_path, []), [])
    assert (collected.grids, collected.steps, collected.details) == ([], [], {})


def test_what_is_known_of_a_tensor(tmp_path):
    steps = [{"gradient/a": np.array([1.0, 0.0, scale], np.float32)} for scale in (2.0, 3.0, np.nan)]
    details = collect(written(tmp_path, steps), []).details["gradient/a"]
    assert (details["dtype"], details["shape"]) == ("float32", [3])
    first, last = details["ends"]
    assert (first["step"], first["numbers"]["max"], first["numbers"]["nan_count"]) == (0, 2.0, 0.0)
    assert (last["step"], last["numbers"]["max"], last["numbers"]["nan_count"]) == (2, "nan", 1.0)
    assert sum(count for _, count in last["histogram"]) == 3
    assert [259, 1] in last["histogram"]


def test_a_run_that_goes_on_is_taken_as_it_is(tmp_path):
    written(tmp_path, [{"gradient/a": gradient(1.0)}] * 3, ended=False)
    assert collect(opened(tmp_path), []).steps == [0, 1, 2]
