"""Which metrics of XGBoost are losses: those of which it is known that less is better."""

from __future__ import annotations

import pytest

xgboost = pytest.importorskip("xgboost")

from xgboost.callback import EarlyStopping

from smd_agent.analysis.trial import create_trial

_START = """
import numpy as np, xgboost as xgb
from xgboost.callback import EarlyStopping
rng = np.random.default_rng(0)
x = rng.normal(size=(300, 4)).astype(np.float32)
y = x[:, 0] * 3 + x[:, 1]
train, test = xgb.DMatrix(x[:200], y[:200]), xgb.DMatrix(x[200:], y[200:])
sets = [(train, "train"), (test, "test")]
alone = {"disable_default_eval_metric": 1, "nthread": 1, "max_depth": 2}

def own(name):
    def metric(predictions, data):
        truth = data.get_label()
        return name, float(1 - ((predictions - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())
    return metric

def go(name, **how):
    xgb.train(alone, train, 4, evals=sets, custom_metric=own(name), verbose_eval=False, **how)
"""
_CONFIG = {
    "HookParameters": {"save_interval": 1},
    "CollectionConfigurations": [{"CollectionName": name} for name in ("metrics", "losses")],
}


def losses(runner, tmp_path, body):
    result = runner.by_variable(runner.write(_START + body + "\n"), config=_CONFIG)
    assert result.returncode == 0, result.stderr
    trial = create_trial(str(tmp_path / "run"))
    assert trial.tensor_names(collection="metrics")
    return trial.tensor_names(collection="losses"), result.stderr


@pytest.mark.parametrize(
    "body",
    [
        "go('r2')",
        "go('f1', maximize=False)",
        "go('gini', maximize=True)",
        "go('r2', early_stopping_rounds=3, maximize=True)",
        "go('r2', callbacks=[EarlyStopping(rounds=3, maximize=True)])",
        # Early stopping goes by the last metric, of which nobody has said anything: XGBoost takes a name like map's so.
        "go('map_like', callbacks=[EarlyStopping(rounds=3)])",
    ],
)
def test_a_metric_is_no_loss_where_nobody_says_that_less_is_better(body, runner, tmp_path):
    found, said = losses(runner, tmp_path, body)
    assert found == []
    assert said.count("smd_agent: losses cannot be saved: ") == 1
    assert "came up in a step" not in said


@pytest.mark.parametrize(
    "body, names",
    [
        ("go('pinball', early_stopping_rounds=3)", ["test-pinball", "train-pinball"]),
        ("go('pinball', early_stopping_rounds=3, maximize=False)", ["test-pinball", "train-pinball"]),
        ("go('pinball', callbacks=[EarlyStopping(rounds=3)])", ["test-pinball", "train-pinball"]),
        (
            "go('pinball', callbacks=[EarlyStopping(rounds=3, maximize=False, data_name='train')])",
            ["test-pinball", "train-pinball"],
        ),
        ("go('rmse')", ["test-rmse", "train-rmse"]),
        (
            "xgb.cv(alone, train, 4, nfold=2, custom_metric=own('pinball'), early_stopping_rounds=3)",
            ["test-pinball-mean", "train-pinball-mean"],
        ),
        (
            "alone['eval_metric'] = ['rmse', 'mae']\n"
            "go('score', callbacks=[EarlyStopping(rounds=3, metric_name='rmse')])",
            ["test-mae", "test-rmse", "train-mae", "train-rmse"],
        ),
    ],
)
def test_a_metric_that_early_stopping_wants_small_is_a_loss(body, names, runner, tmp_path):
    found, said = losses(runner, tmp_path, body)
    assert found == names
    assert "cannot be saved" not in said


def test_every_metric_of_xgboost_has_its_direction(runner, tmp_path):
    body = """
labels = (y > 0).astype(int)
def of(objective, label, metrics, **more):
    data = xgb.DMatrix(x, label, **more.pop("data", {}))
    params = {"objective": objective, "eval_metric": metrics, **more}
    xgb.train(params, data, 2, evals=[(data, "a")], verbose_eval=False)

of("binary:logistic", labels, ["logloss", "error", "error@0.7", "auc", "aucpr", "ams@0.1"])
of("multi:softprob", np.arange(300) % 3, ["mlogloss", "merror"], num_class=3)
of("reg:squarederror", np.abs(y), ["rmse", "rmsle", "mae", "mape", "mphe"])
of("count:poisson", np.abs(y), ["poisson-nloglik"])
of("reg:gamma", np.abs(y) + 1, ["gamma-nloglik", "gamma-deviance"])
of("reg:tweedie", np.abs(y), ["tweedie-nloglik@1.5"])
of("survival:cox", np.abs(y) + 1, ["cox-nloglik"])
of("rank:ndcg", labels, ["ndcg", "map@2", "pre@2"], data={"qid": np.arange(300) // 10})
bounds = {"label_lower_bound": np.abs(y) + 1, "label_upper_bound": np.abs(y) + 2}
of("survival:aft", None, ["aft-nloglik", "interval-regression-accuracy"], data=bounds)
"""
    found, _ = losses(runner, tmp_path, body)
    assert {name.removeprefix("a-") for name in found} == {
        *("logloss", "error", "error@0.7", "mlogloss", "merror", "rmse", "rmsle", "mae", "mape", "mphe"),
        *("poisson-nloglik", "gamma-nloglik", "gamma-deviance", "tweedie-nloglik@1.5", "cox-nloglik", "aft-nloglik"),
    }


def test_early_stopping_has_the_attributes_that_are_read():
    stopping = EarlyStopping(rounds=3, metric_name="m", data_name="d", maximize=False)
    assert {"rounds": 3, "metric_name": "m", "data": "d", "maximize": False}.items() <= vars(stopping).items()
