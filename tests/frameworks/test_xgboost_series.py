"""The series of XGBoost: a row for each round, saved or not, and a training that is none the wiser."""

from __future__ import annotations

import json

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost")

from harness.compare import assert_untouched, run_both
from harness.killed import assert_series_survives

import smd_agent.xgboost as smd
from smd_agent import guard
from smd_agent.analysis.trial import create_trial
from smd_agent.core.budget import Rests
from smd_agent.formats.series import ABSENT
from smd_agent.framework import series_pauses
from smd_agent.framework.boosting import every_round
from smd_agent.framework.boosting.library import Training
from smd_agent.xgboost.library import XGBoost
from smd_agent.xgboost.objectives import objective_metrics

SELDOM = smd.SaveConfig(save_interval=1000)
BINARY = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}

DATA = """
import json, sys
import numpy as np
import xgboost
rng = np.random.default_rng(0)
values = rng.normal(size=(300, 5))
train = xgboost.DMatrix(values[:200], (values[:200, 0] > 0).astype(float))
test = xgboost.DMatrix(values[200:], (values[200:, 1] > 0).astype(float))
BINARY = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
"""
TRAINING = f"""{DATA}
log = {{}}
sets = [(train, "mine"), (test, "test")]
model = xgboost.train({{**BINARY, "eta": 0.25, "eval_metric": ["auc", "logloss"]}}, train, 23, evals=sets,
                      evals_result=log, verbose_eval=False)
print(json.dumps(log))
print(model.save_raw().hex(), rng.random())
"""
ESTIMATOR = f"""{DATA}
model = xgboost.XGBRegressor(n_estimators=15, learning_rate=0.5, n_jobs=1)
model.fit(values[:200], values[:200, 0], eval_set=[(values[:200], values[:200, 0])], verbose=False)
print(json.dumps(model.evals_result()))
"""
FOLDS = f"""{DATA}
table = xgboost.cv(BINARY, train, 12, nfold=3, as_pandas=False, seed=3)
print(json.dumps({{"train-logloss-mean": table["train-logloss-mean"], "test-logloss-std": table["test-logloss-std"]}}))
"""
SCHEDULE = f"""{DATA}
rates = [0.5, 0.4, 0.3, 0.2, 0.1]
xgboost.train(BINARY, train, 5, callbacks=[xgboost.callback.LearningRateScheduler(rates)])
"""
KILLED = f"""{DATA}
class Tell(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        tell(epoch, evals_log["train"]["logloss"][-1])
        time.sleep(0.02)
xgboost.train(BINARY, train, 1000000, evals=[(train, "train")], verbose_eval=False, callbacks=[Tell()])
"""


def data(seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(80, 3)).astype(np.float32)
    return xgboost.DMatrix(values, (values[:, 0] > 0).astype(float))


def logged(both, steps):
    """The log that a script prints, and the rows of its rounds."""
    assert_untouched(both)
    table = both.trial.series()["steps"]
    assert table.steps.tolist() == [*range(steps)]
    assert np.isnan(table["series/seconds"][0])
    assert (table["series/seconds"][1:] > 0).all()
    return json.loads(both.plain.stdout.splitlines()[0]), table


def test_each_round_has_what_the_training_logs(runner):
    both = run_both(runner, runner.write(TRAINING))
    log, table = logged(both, 23)
    for name in ("mine", "test"):
        for metric in ("auc", "logloss"):
            assert table[f"series/{name}-{metric}"].tolist() == log[name][metric]
    assert table["series/loss"].tolist() == log["mine"]["logloss"]
    assert table["series/learning_rate"].tolist() == [0.25] * 23
    assert both.trial.tensor("mine-logloss").steps() == [0, 10, 20]
    assert both.trial.tensor("series/mine-logloss").value(7).tolist() == [log["mine"]["logloss"][7]]


def test_an_estimators_rounds_are_rows_and_its_copy_of_the_data_is_not_known_as_the_trained(runner):
    both = run_both(runner, runner.write(ESTIMATOR))
    log, table = logged(both, 15)
    assert table["series/validation_0-rmse"].tolist() == log["validation_0"]["rmse"]
    assert table["series/learning_rate"].tolist() == [0.5] * 15


def test_a_cross_validations_rounds_have_means(runner):
    both = run_both(runner, runner.write(FOLDS))
    log, table = logged(both, 12)
    assert table["series/loss"].tolist() == log["train-logloss-mean"]
    assert table["series/test-logloss-std"].tolist() == log["test-logloss-std"]


def test_it_is_switched_off_by_a_key(runner):
    both = run_both(runner, runner.write(TRAINING), config={"HookParameters": {"series": False}})
    assert_untouched(both)
    assert "steps" not in both.trial.series()


def test_rounds_that_a_kill_ends_are_there(tmp_path):
    assert_series_survives(tmp_path, KILLED)


def test_a_rate_that_a_schedule_sets_is_that_of_the_next_round(runner):
    both = run_both(runner, runner.write(SCHEDULE))
    table = both.trial.series()["steps"]
    found = {step: rate for step, rate in enumerate(table["series/learning_rate"]) if not np.isnan(rate)}
    # What would take too long is left out, and all where it is not known whom XGBoost calls first.
    assert all(rate == pytest.approx([0.3, 0.5, 0.4, 0.3, 0.2][step]) for step, rate in found.items())
    assert bool(found) == (int(xgboost.__version__.partition(".")[0]) >= 2)


def test_who_looks_at_a_rate_after_it_was_set_does_not_know_it(out):
    model, schedule, hook = (
        xgboost.train(BINARY, data(), 1),
        xgboost.callback.LearningRateScheduler([0.5]),
        smd.Hook(out),
    )
    for callbacks, is_known in (([], True), ([hook], True), ([schedule, hook], False)):
        library = XGBoost(Training(call={"dtrain": data(), "callbacks": callbacks}))
        assert (library.learning_rate(model) is not ABSENT) == is_known
    assert XGBoost(Training()).learning_rate(model) is ABSENT


def test_a_second_training_goes_on_and_has_its_own_names(out, rows):
    hook = smd.Hook(out, save_config=SELDOM)
    for name in ("one", "other"):
        rows_of = data()
        xgboost.train(BINARY, rows_of, 3, evals=[(rows_of, name)], verbose_eval=False, callbacks=[hook])
    assert [row["step"] for row in rows("steps")] == [*range(6)]
    assert ["series/one-logloss" in row for row in rows("steps")] == [True] * 3 + [False] * 3
    assert [row.get("series/seconds") is None for row in rows("steps")] == [True, False, False] * 2


def test_short_rounds_rest_but_the_first_and_the_last_one_of_a_training(out, rows, monkeypatch):
    monkeypatch.setattr(Rests, "after", lambda *_: 3)
    hook = smd.Hook(out, save_config=SELDOM)
    log = {}
    for _ in range(2):
        rows_of = data()
        how = {"evals": [(rows_of, "train")], "evals_result": log, "verbose_eval": False, "callbacks": [hook]}
        xgboost.train(BINARY, rows_of, 13, **how)
    assert [row["step"] for row in rows("steps")] == [0, 1, 5, 9, 12, 13, 14, 18, 22, 25]
    # That of a round after rests is its own; that of the last one is not known.
    assert ["series/seconds" in row for row in rows("steps")] == [False, True, True, True, False] * 2
    losses = [row["series/train-logloss"] for row in rows("steps")[5:]]
    assert losses == [log["train"]["logloss"][number] for number in (0, 1, 5, 9, 12)]


def test_what_rounds_that_rest_take_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(Rests, "after", lambda _, seconds, others: told.append((seconds, others)) or 2)
    clock = iter([10.0, 11.0, 14.0, 14.5]).__next__
    monkeypatch.setattr(series_pauses, "perf_counter", clock)
    rests = series_pauses.StepsAtRest()
    rests.begin()
    rests.begin()
    for left in (1, 0):
        rests.passes()
        assert rests.left == left
    rests.begin()
    assert told == [(1.0, 0.0), (0.5, 1.5)]


def test_what_an_objective_of_the_programs_makes_small_is_not_known(out, rows):
    rows_of = data()
    training = Training(call={"dtrain": rows_of, "evals": [(rows_of, "train")], "obj": lambda *_: None})
    model = xgboost.train(BINARY, rows_of, 1)
    assert XGBoost(training).training_loss(model, ["train-logloss"]) is None


def test_metrics_with_parameters_are_told_from_those_of_others():
    model = xgboost.train({"objective": "reg:tweedie", "nthread": 1}, data(), 1)
    assert objective_metrics(model, ["rmse", "tweedie-nloglik@1.5"]) == ["tweedie-nloglik@1.5"]
    model = xgboost.train({"objective": "rank:ndcg", "nthread": 1}, data(), 1)
    assert objective_metrics(model, ["ndcg@32"]) == []


def test_a_failure_costs_the_series_alone(out, monkeypatch, capfd):
    monkeypatch.setattr(guard, "strict", False)
    monkeypatch.setattr(every_round.LearningRate, "of", lambda *_: 1 / 0)
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1))
    rows_of = data()
    xgboost.train(BINARY, rows_of, 6, evals=[(rows_of, "train")], verbose_eval=False, callbacks=[hook])
    hook.close()
    trial = create_trial(out)
    assert trial.tensor("train-logloss").steps() == [*range(6)]
    assert "steps" not in trial.series()
    assert "rows of the series" in capfd.readouterr().err
