"""SHAP values kept from round to round equal, bit for bit, those that XGBoost computes over all trees."""

from __future__ import annotations

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost")

import smd_agent.xgboost as smd
from smd_agent.analysis.trial import create_trial

ROWS, FEATURES, ROUNDS = 150, 6, 11
OBJECTIVES = {
    "binary": {"objective": "binary:logistic"},
    "classes": {"objective": "multi:softprob", "num_class": 3},
    "ranking": {"objective": "rank:pairwise"},
    "regression": {"objective": "reg:squarederror", "subsample": 0.6, "colsample_bytree": 0.5, "max_depth": 8},
    "dart": {"objective": "binary:logistic", "booster": "dart", "rate_drop": 0.4},
    "forest": {"objective": "binary:logistic", "num_parallel_tree": 3, "subsample": 0.7},
    "base score": {"objective": "binary:logistic", "base_score": 0.9},
}


def matrix(kind, margin=False, make=xgboost.DMatrix, sparse=False):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    values[rng.random(values.shape) < 0.1] = np.nan
    classes = OBJECTIVES[kind].get("num_class", 2)
    more = {"label": np.argsort(np.argsort(np.nan_to_num(values[:, 0] * values[:, 1]))) * classes // ROWS}
    if kind == "ranking":
        more["qid"] = np.sort(rng.integers(0, 12, ROWS))
    if margin:
        more["base_margin"] = rng.normal(size=(ROWS, classes) if classes > 2 else ROWS).astype(np.float32)
    if sparse:
        values = pytest.importorskip("scipy.sparse").csr_matrix(np.nan_to_num(values))
    return make(values, **more)


class Explained(xgboost.callback.TrainingCallback):
    """Has the whole model of every round explained by XGBoost, from its serialised form."""

    def __init__(self, data):
        super().__init__()
        self.data = data
        self.rounds = []

    def after_iteration(self, model, epoch, evals_log):
        self.rounds.append(bytes(model.save_raw(raw_format="ubj")))
        return False

    def contributions(self, step):
        booster = xgboost.Booster()
        booster.load_model(bytearray(self.rounds[step]))
        return booster.predict(self.data, pred_contribs=True)


def compare(out, params, data, steps, **how):
    explained = Explained(data)
    hook = smd.Hook(
        out,
        include_collections=["full_shap", "average_shap"],
        save_config=smd.SaveConfig(save_steps=steps, save_interval=10**6, start_step=1),
        train_data=data,
    )
    xgboost.train(
        {"max_depth": 3, "nthread": 1, **params}, data, ROUNDS, verbose_eval=False, callbacks=[hook, explained], **how
    )
    hook.close()
    trial = create_trial(out)
    (name,) = trial.tensor_names(collection="full_shap")
    assert trial.tensor(name).steps() == steps
    for step in steps:
        expected = explained.contributions(step)
        saved = trial.tensor(name).value(step)
        assert saved.dtype == np.float32
        assert saved.shape == expected.shape
        np.testing.assert_array_equal(saved, expected)
        means = np.abs(expected).reshape(-1, FEATURES + 1).mean(axis=0, dtype=np.float64)
        averages = [trial.tensor(f"average_shap/f{i}").value(step)[0] for i in range(FEATURES)]
        np.testing.assert_array_equal(averages, means[:-1])
    return trial.tensor(name)


@pytest.mark.parametrize("margin", [False, True], ids=["", "margin"])
@pytest.mark.parametrize("kind", sorted(OBJECTIVES))
def test_values_equal_those_of_the_whole_model(kind, margin, out, capsys):
    data = matrix(kind, margin)
    tensor = compare(out, OBJECTIVES[kind], data, [0, 1, 4, 10])
    assert tensor.value(10).shape == ((ROWS, 3, FEATURES + 1) if kind == "classes" else (ROWS, FEATURES + 1))
    told = capsys.readouterr().err.count("SHAP values are computed over all trees in every saved round")
    assert told == (1 if kind in ("dart", "forest") else 0)


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_values_of_a_model_continued_from_another(kind, out):
    data = matrix(kind)
    first = xgboost.train({**OBJECTIVES[kind], "max_depth": 2}, data, 5)
    compare(out, OBJECTIVES[kind], data, [3, 10], xgb_model=first)


# XGBoost warns of an updater named by hand; there is no other way to refresh.
@pytest.mark.filterwarnings("ignore:.*updater.*:UserWarning")
def test_values_of_trees_that_are_refreshed(out):
    data = matrix("binary")
    first = xgboost.train({**OBJECTIVES["binary"], "max_depth": 2}, data, ROUNDS)
    update = {"process_type": "update", "updater": "refresh", "refresh_leaf": True, "eta": 0.1}
    # XGBoost itself explains no model of which only some trees are refreshed.
    compare(out, {**OBJECTIVES["binary"], **update}, data, [0, 10], xgb_model=first)


def test_values_of_sparse_rows(out):
    compare(out, OBJECTIVES["regression"], matrix("regression", sparse=True), [2, 7])


@pytest.mark.skipif(xgboost.__version__.startswith("1."), reason="XGBoost explains no quantile matrix before 2.0")
def test_values_of_a_quantile_matrix(out):
    compare(out, OBJECTIVES["regression"], matrix("regression", make=xgboost.QuantileDMatrix), [2, 7])


def test_only_new_rounds_are_explained(out, monkeypatch):
    explained = []
    predict = xgboost.Booster.predict

    def counting(self, data, **how):
        if how.get("pred_contribs") and data.num_row() > 1:
            explained.append(self.num_boosted_rounds())
        return predict(self, data, **how)

    monkeypatch.setattr(xgboost.Booster, "predict", counting)
    data = matrix("binary")
    steps = smd.SaveConfig(save_interval=4)
    hook = smd.Hook(out, include_collections=["full_shap", "average_shap"], save_config=steps, train_data=data)
    xgboost.train(OBJECTIVES["binary"], data, 9, callbacks=[hook])
    assert explained == [1] + [1] * 8


def test_a_round_that_could_not_be_explained_does_not_spoil_the_next(out, monkeypatch):
    predict = xgboost.Booster.predict
    calls = []

    def failing(self, data, **how):
        calls.append(1)
        if len(calls) == 3:
            raise ValueError("not this time")
        return predict(self, data, **how)

    data = matrix("binary")
    steps = smd.SaveConfig(save_interval=3)
    hook = smd.Hook(out, include_collections=["full_shap"], save_config=steps, train_data=data)
    monkeypatch.setattr(xgboost.Booster, "predict", failing)
    model = xgboost.train(OBJECTIVES["binary"], data, 7, callbacks=[hook])
    monkeypatch.undo()
    hook.close()
    tensor = create_trial(out).tensor("full_shap/matrix")
    assert tensor.steps() == [0, 6]
    np.testing.assert_array_equal(tensor.value(6), model.predict(data, pred_contribs=True))
