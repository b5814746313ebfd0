"""MonitoredWrongWay, on names of metrics, and on what Keras's callbacks go by."""

from __future__ import annotations

import numpy as np
import pytest
from harness.runner import Runner

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys
from smd_agent.rules import MonitoredWrongWay
from smd_agent.rules.finding import Severity
from smd_agent.rules.judging import Judging

LARGE_IS_GOOD = (
    *("val_acc", "val_accuracy", "sparse_categorical_accuracy", "val_auc_1", "eval_f1", "val/dice", "test-mAP", "R2"),
    *("val_top_5_accuracy", "mean_iou", "eval_rougeL", "valid.recall", "qwk", "val-qwk", "valid gini"),
)
SMALL_IS_GOOD = ("val_loss", "loss", "eval_loss", "val/loss_epoch", "RMSE", "val_binary_cross_entropy", "eval_wer")
UNKNOWN = ("score", "val_neg_loss", "iou_loss", "accuracy_error", "elbo", "monitor", "neg_mean_squared_error")


def findings(written, metric, largest=0, smallest=0):
    run = written(usage="^usage/")
    for _ in range(2):
        numbers = {f"usage/monitor/{metric}/largest_wins": largest, f"usage/monitor/{metric}/smallest_wins": smallest}
        run.step(**{name: np.float64(number) for name, number in numbers.items()})
    return run.ended().findings(MonitoredWrongWay())


@pytest.mark.parametrize("metric", LARGE_IS_GOOD)
def test_large_values_that_lose(written, metric):
    (found,) = findings(written, metric, smallest=1)
    assert found.severity is Severity.WARNING
    assert "smallest value of the metric" in found.cause
    assert 'mode="max"' in found.advice


@pytest.mark.parametrize("metric", SMALL_IS_GOOD)
def test_small_values_that_lose(written, metric):
    (found,) = findings(written, metric, largest=1)
    assert "largest value of the metric" in found.cause
    assert 'mode="min"' in found.advice


@pytest.mark.parametrize("metric", [*LARGE_IS_GOOD, *UNKNOWN])
def test_large_values_that_win(written, metric):
    assert findings(written, metric, largest=1) == []


@pytest.mark.parametrize("metric", [*SMALL_IS_GOOD, *UNKNOWN])
def test_small_values_that_win(written, metric):
    assert findings(written, metric, smallest=1) == []


def test_one_of_two_callbacks(written):
    (found,) = findings(written, "val_acc", largest=1, smallest=1)
    assert found.evidence == {"largest_wins": 1, "smallest_wins": 1}


BEST = {"save_weights_only": True, "monitor": "val_auc", "mode": "min"}
CALLBACKS = {
    "early stopping": (lambda made, _: made.EarlyStopping("val_auc", mode="min"), True),
    "early stopping, right": (lambda made, _: made.EarlyStopping("val_auc", mode="max"), False),
    "early stopping that chooses itself": (lambda made, _: made.EarlyStopping("val_auc"), False),
    "learning rate": (lambda made, _: made.ReduceLROnPlateau("val_auc", mode="min"), True),
    "best checkpoint": (lambda made, file: made.ModelCheckpoint(file, save_best_only=True, **BEST), True),
    "every checkpoint": (lambda made, file: made.ModelCheckpoint(file, **BEST), False),
}


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks_of_keras(tmp_path, name):
    keras = pytest.importorskip("tensorflow").keras
    smd = pytest.importorskip("smd_agent.tensorflow")
    make, is_wrong = CALLBACKS[name]
    hook = smd.KerasHook(
        str(tmp_path / "run"), save_config=smd.SaveConfig(save_interval=1), include_collections=["usage"]
    )
    model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(1, "sigmoid")])
    model.compile("sgd", "binary_crossentropy", metrics=[keras.metrics.AUC(name="auc")])
    x, y = np.random.rand(16, 3).astype("f4"), np.arange(16) % 2
    callbacks = [hook, make(keras.callbacks, str(tmp_path / "best.weights.h5"))]
    model.fit(x, y, batch_size=8, epochs=2, verbose=0, validation_data=(x, y), callbacks=callbacks)
    hook.close()
    judging = Judging(smd.create_trial(hook.out_dir), [MonitoredWrongWay()])
    judging.take_new()
    found = [one.tensor for one in judging.verdict().findings]
    assert found == ["usage/monitor/val_auc/smallest_wins"] * is_wrong


CONFIG = {"HookParameters": {"save_interval": 2}, "CollectionConfigurations": [{"CollectionName": "data_facts"}]}
STOPPED = {
    # What the training is told, its own metric, and the fact that is wrong.
    "a metric of one's own": ({"early_stopping_rounds": 5}, "f1", "data_facts/monitor/f1/smallest_wins"),
    "the same, told the right way": ({"early_stopping_rounds": 5, "maximize": True}, "f1", None),
    "an error": ({"early_stopping_rounds": 5}, "error_of", None),
    "an error, told the wrong way": (
        {"early_stopping_rounds": 5, "maximize": True},
        "error_of",
        "data_facts/monitor/wrong_error/largest_wins",
    ),
    "no early stopping": ({}, "f1", None),
    "XGBoost's own": ({"early_stopping_rounds": 5, "eval_metric": "auc"}, None, None),
}


@pytest.mark.parametrize("cross_validated", [False, True])
@pytest.mark.parametrize("name", STOPPED)
def test_early_stopping_of_xgboost(tmp_path, name, cross_validated):
    pytest.importorskip("xgboost")
    runner = Runner(tmp_path)
    told, metric, expected = STOPPED[name]
    told = dict(told)
    parameters = {"objective": "binary:logistic", "nthread": 1, "eval_metric": told.pop("eval_metric", "logloss")}
    words = ", ".join([*(f"{key}={value!r}" for key, value in told.items()), f"custom_metric={metric}"])
    program = f"""
import numpy as np
import xgboost
rows = np.random.RandomState(0).rand(80, 3)
data = xgboost.DMatrix(rows, label=rows[:, 0] > 0.5)
def f1(predicted, data):
    return "f1", float(((predicted > 0.5) == data.get_label()).mean())
def error_of(predicted, data):
    return "wrong_error", float(((predicted > 0.5) != data.get_label()).mean())
if {cross_validated}:
    xgboost.cv({parameters!r}, data, 8, nfold=2, {words})
else:
    xgboost.train({parameters!r}, data, 8, evals=[(data, "own")], verbose_eval=False, {words})
"""
    done = runner.by_variable(runner.write(program), config=CONFIG, SMD_AGENT_STRICT="1")
    assert done.returncode == 0, done.stderr
    judging = Judging(create_trial(str(runner.folder / "run")), [MonitoredWrongWay()])
    judging.take_new()
    found = judging.verdict().findings
    assert [one.tensor for one in found] == [expected] * (expected is not None)
    assert all("EarlyStopping(rounds, maximize=" in one.advice for one in found)


COURSES = {
    # Values by evaluation set, and whether it is noted.
    "grows": ({"own": [0, 0, 1, 2, 3], "other": [0, 1, 1, 2, 2]}, True),
    "falls for trained rows": ({"own": [3, 2, 2, 1, 0], "other": [0, 1, 1, 2, 3]}, False),
    "falls for others": ({"own": [0, 1, 1, 2, 2], "other": [3, 2, 2, 1, 0]}, False),
    "smaller later": ({"own": [1, 2, 0, 3, 3], "other": [0, 1, 1, 2, 2]}, False),
    "the same": ({"own": [1, 1, 1, 1, 1], "other": [2, 2, 2, 2, 2]}, False),
    "trained rows alone": ({"own": [0, 1, 1, 2, 2]}, False),
}


def rounds(run, metric, courses, way="smallest_wins", times=2, **more):
    for number in range(5 * times):
        facts = {f"data_facts/monitor/{metric}/{way}": 1, "data_facts/labels/train/rows": 90}
        facts |= {f"data_facts/evaluation/{name}/training_rows": float(name == "own") for name in courses}
        values = {f"{name}-{metric}": values[number // times] for name, values in courses.items()}
        numbers = {**(facts if number == 0 else {}), **values, **more}
        run.step(ModeKeys.GLOBAL, **{name: np.float64(value) for name, value in numbers.items()})


@pytest.fixture
def boosted(written):
    return written(data_facts="^data_facts/", metrics="^(own|other)-")


@pytest.mark.parametrize("name", COURSES)
def test_a_metric_whose_name_tells_nothing(boosted, name):
    courses, is_noted = COURSES[name]
    rounds(boosted, "my_metric", courses)
    found = boosted.ended().findings(MonitoredWrongWay())
    assert [one.tensor for one in found] == ["data_facts/monitor/my_metric/smallest_wins"] * is_noted
    assert all(one.severity is Severity.NOTE and "takes the first round" in one.cause for one in found)


@pytest.mark.parametrize(
    "metric, told",
    [
        *(("my_metric", {"way": "largest_wins"}), ("my_metric", {"times": 1}), ("wrong_loss", {})),
        *(("mlogloss", {}), ("neg_gain", {})),
    ],
)
def test_courses_that_are_not_judged(boosted, metric, told):
    rounds(boosted, metric, COURSES["grows"][0], **told)
    assert boosted.ended().findings(MonitoredWrongWay()) == []


def test_each_training_has_its_own_course(boosted):
    courses = COURSES["grows"][0]
    # What another training makes of the metric later is not of this one.
    rounds(boosted, "my_metric", courses)
    rounds(boosted, "rmse", {"own": [3, 2, 1, 1, 1], "other": [3, 2, 1, 1, 1]}, **{"own-my_metric": -5.0})
    (found,) = boosted.ended().findings(MonitoredWrongWay())
    assert found.first_step == 0
