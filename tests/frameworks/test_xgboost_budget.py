"""What a launch without options leaves out of boosting rounds: what takes long, and nobody asked for by name."""

from __future__ import annotations

import json
from time import perf_counter

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost")

import smd_agent.xgboost as smd
from smd_agent.analysis.trial import create_trial
from smd_agent.cli.run import overlay
from smd_agent.config.launcher_defaults import default_content
from smd_agent.framework.boosting import affordable
from smd_agent.framework.boosting.library import Training
from smd_agent.rules import LeakingFeature, NoSplit
from smd_agent.rules.judging import Judging
from smd_agent.rules.not_judged import with_reasons
from smd_agent.rules.verdict_in_time import in_one_line, look_shortly
from smd_agent.xgboost.library import XGBoost
from smd_agent.xgboost.shap import Contributions

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(400, 8)).astype(np.float32)
LABELS = (ROWS[:, 0] + ROWS[:, 1] + RNG.normal(size=400) > 0.8).astype(int)
DEAR = ("average_shap", "full_shap")


@pytest.fixture
def slow(monkeypatch):
    """Have SHAP values take long, as the agent sees it."""
    monkeypatch.setattr(Contributions, "seconds", lambda *_: 100.0)


@pytest.fixture(autouse=True)
def much_time(monkeypatch):
    """More time than a busy machine takes for trainings as small as these."""
    monkeypatch.setattr(affordable, "SECONDS", 50.0)


@pytest.fixture
def train(out, tmp_path):
    """Train as the launcher has it with these options; the run."""

    def make(options=None, rows=ROWS, rounds=12, content=None, **parameters):
        file = tmp_path / "hook.json"
        found = overlay(default_content(), options or {}) if content is None else content
        file.write_text(json.dumps({**found, "LocalPath": str(out)}))
        hook = smd.Hook.create_from_json_file(str(file))
        data = xgboost.DMatrix(rows, LABELS)
        call = {"dtrain": data, "evals": [(data, "train")]}
        hook.expect(Training(hyperparameters=parameters, train_data=data, validation_data=data, call=call))
        xgboost.train(
            {"nthread": 1, "objective": "binary:logistic", **parameters},
            data,
            rounds,
            callbacks=[hook],
            evals=[(data, "train")],
            verbose_eval=False,
        )
        hook.close()
        return create_trial(str(out))

    return make


def verdict(trial, rule):
    judging = Judging(trial, [rule])
    judging.take_new()
    found = judging.verdict()
    found.not_judged = with_reasons(found.not_judged, trial)
    return found


def collections(trial):
    return {
        name
        for name in (*DEAR, "trees", "predictions", "labels", "feature_importance", "metrics")
        if trial.tensor_names(collection=name)
    }


def test_a_small_training_has_it_all(train, capsys):
    trial = train()
    assert collections(trial) >= {*DEAR, "trees", "predictions", "labels", "feature_importance", "metrics"}
    assert trial.tensor("full_shap/matrix").steps() == trial.tensor("trees/Node").steps()
    assert "left out" not in capsys.readouterr().err


def test_what_would_take_long_is_left_out_and_said(train, slow, capsys):
    trial = train()
    assert collections(trial) == {"trees", "predictions", "labels", "feature_importance", "metrics"}
    told = [line for line in capsys.readouterr().err.splitlines() if "shap" in line and "saving" not in line]
    last = trial.steps()[-1]
    assert told == [
        "smd_agent: left out, as it would have taken more than 50 s and 2% of the time: average_shap, full_shap of "
        f"{len(trial.steps())} saved rounds, 0 to {last}; asked for by name, as by --save average_shap,full_shap, "
        "it is saved"
    ]
    assert {*trial.collection_manager.left_out} == {*DEAR}
    assert trial.collection_manager.cannot_save == {}


@pytest.mark.parametrize(
    "options",
    [{"--save": "average_shap,full_shap"}, {"--save": "all"}, {"--every": "10"}, {"--save": "all", "--every": "5"}],
)
def test_what_is_asked_for_is_saved(options, train, slow):
    assert collections(train(options)) >= {*DEAR}


def test_a_hook_file_names_it_or_not(train, slow):
    parameters = {"within_budget": True, "save_interval": 5}
    named = {
        "HookParameters": parameters,
        "CollectionConfigurations": [{"CollectionName": "full_shap"}, {"CollectionName": "all"}],
    }
    assert collections(train(content=named)) & {*DEAR} == {"full_shap"}


@pytest.mark.parametrize("more", [{"include_regex": "^average_shap/f0$"}, {"save_all": True}])
def test_regexes_name_tensors(more, train, slow):
    content = {"HookParameters": {"within_budget": True, **more}}
    assert "average_shap/f0" in train(content=content).tensor_names()


def test_a_feature_that_leaks_is_found_without_shap_values(train, slow):
    rows = ROWS.copy()
    rows[:, 7] = LABELS + RNG.normal(size=400) / 100
    (found,) = verdict(train(rows=rows), LeakingFeature()).findings
    assert found.evidence["features"] == 8


def test_a_rule_that_lacks_it_says_that_it_was_left_out(train, monkeypatch):
    monkeypatch.setattr(XGBoost, "seconds_of_trees", lambda *_: 100.0)
    trial = train()
    assert collections(trial) >= {*DEAR}
    assert "trees" not in collections(trial)
    (one,) = verdict(trial, NoSplit()).not_judged
    assert one.reason == "trees left out, as it would have taken more than 50 s and 2% of the time"
    assert (one.option, one.never_came_up) == ("add trees to --save", False)
    steps = trial.steps()
    look = look_shortly(trial, steps, lambda step: trial.step_table.files(step), 100.0)
    assert in_one_line(look).endswith("; not judged, as trees was left out: NoSplit")


def test_the_seconds_are_told_by_few_rows_before_and_by_the_last_time_after():
    data = xgboost.DMatrix(RNG.normal(size=(20_000, 10)).astype(np.float32), RNG.integers(0, 2, 20_000))
    parameters = {"max_depth": 6, "nthread": 1, "objective": "binary:logistic"}
    model = xgboost.train(parameters, data, 3)
    shap = Contributions(data)
    first = shap.seconds(model)
    began = perf_counter()
    shap.of(model)
    took = perf_counter() - began
    # Other programs run beside this one.
    assert took / 20 < first < took * 20
    assert shap.seconds(model) == 0
    model = xgboost.train(parameters, data, 2, xgb_model=model)
    assert shap.seconds(model) == pytest.approx(took * 2 / 3, rel=0.1)


@pytest.mark.parametrize("parameters", [{"booster": "dart"}, {"num_parallel_tree": 3}])
def test_of_what_does_not_add_up_all_rounds_are_reckoned(parameters):
    data = xgboost.DMatrix(ROWS, LABELS)
    model = xgboost.train({"nthread": 1, **parameters}, data, 4)
    shap = Contributions(data)
    shap.of(model)
    one = shap.seconds(model)
    assert one > 0
    assert shap.seconds(xgboost.train({"nthread": 1, **parameters}, data, 8)) == pytest.approx(2 * one)


def test_no_model_is_changed_by_the_reckoning():
    data = xgboost.DMatrix(ROWS, LABELS)
    model = xgboost.train({"nthread": 1}, data, 4)
    before = bytes(model.save_raw())
    library = XGBoost(Training())
    library.seconds_of_contributions(model, data)
    assert library.seconds_of_trees(model) > 0
    assert bytes(model.save_raw()) == before
