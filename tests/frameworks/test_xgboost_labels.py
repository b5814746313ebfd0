"""Trainings whose data has no labels: a line says so."""

from __future__ import annotations

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost")

import smd_agent.xgboost as smd


def test_data_with_bounds_has_no_labels_and_a_line_says_so(out, capfd):
    rng = np.random.default_rng(0)
    data = xgboost.DMatrix(rng.normal(size=(50, 3)))
    lower = rng.uniform(1, 5, 50)
    data.set_float_info("label_lower_bound", lower)
    data.set_float_info("label_upper_bound", lower + 1)
    names = ["labels", "predictions"]
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=names, validation_data=data)
    parameters = {"objective": "survival:aft", "eval_metric": "aft-nloglik"}
    xgboost.train(parameters, data, 3, evals=[(data, "train")], verbose_eval=False, callbacks=[hook])
    hook.close()
    assert smd.create_trial(out).tensor_names(collection="predictions") == ["predictions"]
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "labels" in line and "saving" not in line]
    assert "labels cannot be saved: the evaluation data has none" in line
    assert "label_lower_bound" in line
