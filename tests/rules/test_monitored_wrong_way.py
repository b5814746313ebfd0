"""MonitoredWrongWay, on names of metrics, and on what Keras's callbacks go by."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.rules import MonitoredWrongWay
from smd_agent.rules.finding import Severity
from smd_agent.rules.judging import Judging

LARGE_IS_GOOD = (
    *("val_acc", "val_accuracy", "sparse_categorical_accuracy", "val_auc_1", "eval_f1", "val/dice", "test-mAP", "R2"),
    *("val_top_5_accuracy", "mean_iou", "eval_rougeL", "valid.recall"),
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
