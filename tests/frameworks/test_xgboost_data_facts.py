"""What is known of labels and evaluation sets, against the data and the calls of trainings that nobody edited."""

from __future__ import annotations

import json

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost")
pytest.importorskip("sklearn")

from harness.compare import assert_untouched, run_both

import smd_agent.xgboost as smd
from smd_agent.analysis.trial import create_trial
from smd_agent.xgboost.data_facts import data_facts_of

START = """
import numpy as np
import xgboost as xgb

rng = np.random.default_rng(0)
X = rng.normal(size=(240, 5))
y = (X[:, 0] + rng.normal(size=240) > 1).astype(int)
train, test = xgb.DMatrix(X[:180], y[:180]), xgb.DMatrix(X[180:], y[180:])
binary = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1, "seed": 0}
evals = [(test, "test"), (train, "train")]
print(int(y[:180].sum()), int(y.sum()))
"""
CONFIG = {
    "HookParameters": {"save_interval": 2},
    "CollectionConfigurations": [{"CollectionName": "data_facts"}, {"CollectionName": "metrics"}],
}
OWN, OTHER = {"training_rows": 1}, {"training_rows": 0}
WATCHED = {"stopping_rounds": 4, "other_sets": 1}
WAYS = {
    "early stopping": (
        "model = xgb.train(binary, train, 5, evals=evals, early_stopping_rounds=4, verbose_eval=False)",
        {"test": OTHER, "train": {**OWN, **WATCHED}},
    ),
    "callback": (
        "stop = xgb.callback.EarlyStopping(rounds=4, data_name='test')\n"
        "model = xgb.train(binary, train, 5, evals=evals, callbacks=[stop], verbose_eval=False)",
        {"test": {**OTHER, **WATCHED}, "train": OWN},
    ),
    # An iterator can be walked only once, and is XGBoost's.
    "iterator": (
        "stop = xgb.callback.EarlyStopping(rounds=4)\n"
        "model = xgb.train(binary, train, 5, evals=evals, callbacks=iter([stop]), verbose_eval=False)",
        {"test": OTHER, "train": {**OWN, **WATCHED}},
    ),
    "no stopping": (
        "model = xgb.train(binary, train, 5, evals=evals, verbose_eval=False)",
        {"test": OTHER, "train": OWN},
    ),
    "same rows": (
        "again = xgb.DMatrix(X[:180], y[:180])\n"
        "model = xgb.train(binary, train, 5, evals=[(again, 'again')], verbose_eval=False)",
        {"again": OWN},
    ),
    "estimator": (
        "model = xgb.XGBClassifier(n_estimators=5, n_jobs=1, max_depth=2, early_stopping_rounds=4)\n"
        "sets = [(X[:180], y[:180]), (X[180:], y[180:])]\n"
        "model = model.fit(X[:180], y[:180], eval_set=sets, verbose=False).get_booster()",
        {"validation_0": OWN, "validation_1": {**OTHER, **WATCHED}},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_known_of_evaluation_sets(way, runner):
    body, sets = WAYS[way]
    body += "\nimport hashlib\nprint(hashlib.sha256(model.save_raw()).hexdigest(), model.predict(test).tolist())\n"
    both = run_both(runner, runner.write(START + body), config=CONFIG)
    assert_untouched(both)
    positives = int(both.plain.stdout.split()[0])
    expected = {f"data_facts/evaluation/{name}/{fact}": number for name in sets for fact, number in sets[name].items()}
    labels = {"rows": 180, "features": 5, "positives": positives, "negatives": 180 - positives}
    labels |= {"sample_weight": 1, "scale_pos_weight": 1, "label_min": 0, "label_max": 1}
    expected |= {f"data_facts/labels/train/{name}": value for name, value in labels.items()}
    if any("stopping_rounds" in facts for facts in sets.values()):
        expected |= {"data_facts/monitor/logloss/largest_wins": 0, "data_facts/monitor/logloss/smallest_wins": 1}
    expected |= {"data_facts/rounds/train/learning_rate": 0.3, "data_facts/rounds/train/asked": 5}
    found = create_trial(str(both.folder))
    names = found.tensor_names(collection="data_facts")
    assert {name: found.tensor(name).value(0).item() for name in names} == expected
    # Of each training once.
    assert {step for name in names for step in found.tensor(name).steps()} == {0}


def test_each_training_of_a_program_has_its_own(runner, tmp_path):
    body = (
        "xgb.cv({**binary, 'scale_pos_weight': 3}, train, 3, nfold=3)\n"
        "whole = xgb.DMatrix(X, y, weight=np.where(y == 1, 4.0, 2.0))\n"
        "xgb.train({**binary, 'scale_pos_weight': 0.5}, whole, 3)\n"
        "xgb.train({'nthread': 1}, xgb.DMatrix(X, X[:, 0]), 3)\n"
        "print([float(X[:, 0].astype('f4').min()), float(X[:, 0].astype('f4').max())])\n"
        "own = lambda scores, data: (scores - data.get_label(), np.ones_like(scores))\n"
        "xgb.train({**binary, 'scale_pos_weight': 0.5}, whole, 3, obj=own)\n"
    )
    result = runner.by_variable(runner.write(START + body), config=CONFIG)
    assert result.returncode == 0, result.stderr
    assert "data_facts cannot" not in result.stderr
    few, many = map(int, result.stdout.splitlines()[0].split())
    trial = create_trial(str(tmp_path / "run"))
    saved = {
        step: {
            name.rpartition("/")[2]: trial.tensor(name).value(step).item()
            for name in trial.tensor_names(collection="data_facts")
            if step in trial.tensor(name).steps()
        }
        for step in (0, 4, 6, 10)
    }
    binary = {"label_min": 0, "label_max": 1}
    of_all = {"features": 5, "learning_rate": 0.3, "asked": 3}
    cv = {"rows": 180, "positives": few, "negatives": 180 - few, "sample_weight": 1, "scale_pos_weight": 3}
    one = {"rows": 240, "positives": many, "negatives": 240 - many, "sample_weight": 2, "scale_pos_weight": 0.5}
    least, most = json.loads(result.stdout.splitlines()[1])
    number = {"rows": 240, "label_min": least, "label_max": most}
    each = {0: {**cv, **binary}, 4: {**one, **binary}, 6: number, 10: {"rows": 240, "ignores_weights": 1}}
    assert saved == {step: {**facts, **of_all} for step, facts in each.items()}


def test_what_is_no_label_of_the_objective():
    """Nothing is said of labels where there is a margin of each row, and where times are bounded by other numbers."""
    facts = {}
    for name, how in {"one": {}, "cox": {"objective": "survival:cox"}, "margin": {}}.items():
        data = matrix(np.ones(30))
        if name == "margin":
            data.set_base_margin(np.arange(30.0))
        facts[name] = data_facts_of({"dtrain": data}, xgboost.train({"nthread": 1, **how}, data, 1))
    plain = {"labels/train/rows": 30, "labels/train/features": 3}
    one = {**plain, "labels/train/label_min": 1, "labels/train/label_max": 1}
    assert facts == {"one": one, "cox": plain, "margin": plain}


def test_a_hook_that_is_no_more_than_a_callback_says_what_it_does_not_know(out, capfd):
    data = xgboost.DMatrix(np.eye(20), label=np.arange(20))
    hook = smd.Hook(out, include_collections=["data_facts"])
    xgboost.train({"nthread": 1}, data, 3, evals=[(data, "train")], verbose_eval=False, callbacks=[hook])
    hook.close()
    lines = [line for line in capfd.readouterr().err.splitlines() if "data_facts cannot be saved" in line]
    assert lines == [
        "smd_agent: data_facts cannot be saved: the arguments of the training are not known, which the agent sees and a"
        " hook does not"
    ]


def matrix(labels, seed=0, columns=3):
    return xgboost.DMatrix(np.random.default_rng(seed).normal(size=(len(labels), columns)), label=labels)


MIXED = np.random.default_rng(1).integers(0, 2, 200)


@pytest.mark.parametrize(
    "labels, other, is_same",
    [
        (MIXED, MIXED, True),
        (MIXED, np.r_[MIXED[:-1], 1 - MIXED[-1]], False),
        (MIXED, MIXED[:-1], False),
        # Sorted labels are the same of other rows.
        (np.sort(MIXED), np.sort(MIXED), False),
        (np.arange(51) % 2, np.arange(51) % 2, True),
        (np.arange(50) % 2, np.arange(50) % 2, False),
    ],
)
def test_the_same_rows_are_told_by_their_labels(labels, other, is_same):
    data = matrix(labels)
    model = xgboost.train({"nthread": 1}, data, 1)
    call = {"dtrain": data, "evals": [(matrix(other, 1), "other"), (data, "own")]}
    found = data_facts_of(call, model)
    assert found["evaluation/other/training_rows"] == is_same
    assert found["evaluation/own/training_rows"] == 1
    call["evals"] = [(matrix(other, 1, 4), "other")]
    assert data_facts_of(call, model)["evaluation/other/training_rows"] == 0


def test_nothing_is_kept_of_a_training_and_the_data_stays_as_it_is():
    data = matrix(MIXED)
    before = data.get_label().copy()
    model = xgboost.train({"nthread": 1, "objective": "binary:logistic"}, data, 2)
    raw = model.save_raw()
    data_facts_of({"dtrain": data, "evals": [(data, "own")]}, model)
    assert model.save_raw() == raw
    np.testing.assert_array_equal(data.get_label(), before)
