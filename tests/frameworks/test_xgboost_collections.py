"""What each collection of an XGBoost training holds, against the model, the data and the log of the same training."""

from __future__ import annotations

import json

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost")

import smd_agent.xgboost as smd
from smd_agent.analysis.trial import create_trial

IMPORTANCE_TYPES = ("weight", "gain", "cover", "total_gain", "total_cover")
EVERYTHING = (
    "metrics",
    "losses",
    "hyperparameters",
    "predictions",
    "labels",
    "feature_importance",
    "average_shap",
    "full_shap",
    "trees",
)


def matrix(kind="binary", rows=200, seed=0, names=None):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(rows, 5)).astype(np.float32)
    values[rng.random(values.shape) < 0.05] = np.nan
    score = np.nan_to_num(values[:, 0]) + np.nan_to_num(values[:, 1]) ** 2 + 0.3 * rng.normal(size=rows)
    more = {}
    if kind == "classes":
        label = np.digitize(score, [0.0, 1.0])
    elif kind == "ranking":
        label = np.digitize(score, [-0.5, 0.5, 1.5])
        more["qid"] = np.sort(rng.integers(0, rows // 10, rows))
    elif kind == "regression":
        label = score
    elif kind == "counts":
        label = np.stack([score, values[:, 2]], axis=1)
        label = np.nan_to_num(label)
    else:
        label = (score > 0.5).astype(int)
    return xgboost.DMatrix(values, label=label, feature_names=names, **more)


PARAMETERS = {
    "binary": {"objective": "binary:logistic", "eval_metric": ["logloss", "auc"]},
    "classes": {"objective": "multi:softprob", "num_class": 3, "eval_metric": ["mlogloss", "merror"]},
    "regression": {"objective": "reg:squarederror", "eval_metric": ["rmse", "mape"]},
    "ranking": {"objective": "rank:pairwise", "eval_metric": ["ndcg@3", "ndcg"]},
    "counts": {"objective": "reg:squarederror", "eval_metric": "rmse"},
}


class Kept(xgboost.callback.TrainingCallback):
    """The user's own callback: keeps a copy of the model after every round."""

    def __init__(self):
        super().__init__()
        self.models = []

    def after_iteration(self, model, epoch, evals_log):
        self.models.append(bytes(model.save_raw(raw_format="ubj")))
        return False

    def model(self, step):
        booster = xgboost.Booster()
        booster.load_model(bytearray(self.models[step]))
        return booster


def train(out, kind="binary", rounds=7, include=EVERYTHING, interval=3, evals=True, params=None, names=None, **how):
    data, other = matrix(kind, names=names), matrix(kind, 60, seed=1, names=names)
    hook = smd.Hook(
        out,
        include_collections=list(include),
        save_config=smd.SaveConfig(save_interval=interval),
        hyperparameters={"eta": 0.3, "objective": PARAMETERS[kind]["objective"]},
        train_data=data,
        validation_data=other,
        **how.pop("hook", {}),
    )
    kept, log = Kept(), {}
    xgboost.train(
        {**PARAMETERS[kind], "max_depth": 3, "nthread": 1, **(params or {})},
        data,
        rounds,
        evals=[(data, "train"), (other, "test")] if evals else [],
        evals_result=log,
        verbose_eval=False,
        callbacks=[hook, kept],
        **how,
    )
    hook.close()
    return create_trial(out), kept, log, other


def values(trial, name):
    tensor = trial.tensor(name)
    return {step: tensor.value(step) for step in tensor.steps()}


@pytest.mark.parametrize("kind", sorted(PARAMETERS))
def test_metrics_are_those_of_the_log(kind, out):
    trial, _, log, _ = train(out, kind)
    expected = {f"{data}-{metric}": log[data][metric] for data in log for metric in log[data]}
    assert set(trial.tensor_names(collection="metrics")) == set(expected)
    for name, series in expected.items():
        assert {step: float(value[0]) for step, value in values(trial, name).items()} == {
            step: series[step] for step in (0, 3, 6)
        }


def test_losses_are_the_metrics_of_which_less_is_better(out):
    metrics = ["auc", "aucpr", "map", "ndcg", "ndcg@3", "map@2-", "logloss", "error", "error@0.7", "rmse"]
    trial, *_ = train(out, params={"eval_metric": metrics}, include=["losses"])
    losses = ["error", "error@0.7", "logloss", "rmse"]
    assert sorted(trial.tensor_names(collection="losses")) == sorted(
        f"{data}-{m}" for data in ("test", "train") for m in losses
    )


def test_metrics_of_every_spelling_are_saved(out):
    data = matrix()

    def score_2(predictions, data):
        return "my/score-2", float(predictions.mean())

    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1))
    xgboost.train(
        {"objective": "binary:logistic", "eval_metric": ["error@0.7", "aucpr"]},
        data,
        2,
        evals=[(data, "fold/1_a")],
        custom_metric=score_2,
        verbose_eval=False,
        callbacks=[hook],
    )
    hook.close()
    found = set(create_trial(out).tensor_names(collection="metrics"))
    assert found == {"fold/1_a-error@0.7", "fold/1_a-aucpr", "fold/1_a-my/score-2"}


@pytest.mark.parametrize("kind", sorted(PARAMETERS))
def test_predictions_and_labels_are_those_of_the_evaluation_data(kind, out):
    trial, kept, _, other = train(out, kind)
    for step, saved in values(trial, "predictions").items():
        expected = kept.model(step).predict(other)
        assert saved.dtype == expected.dtype
        np.testing.assert_array_equal(saved, expected)
    for saved in values(trial, "labels").values():
        np.testing.assert_array_equal(saved, other.get_label())


def test_predictions_have_one_column_for_each_class(out):
    trial, *_ = train(out, "classes")
    assert trial.tensor("predictions").value(6).shape == (60, 3)


@pytest.mark.parametrize("kind", ["binary", "classes"])
@pytest.mark.parametrize("booster", ["gbtree", "dart"])
def test_feature_importance_is_the_models_score_as_a_share(kind, booster, out):
    trial, kept, _, _ = train(out, kind, params={"booster": booster}, include=["feature_importance"])
    for step in (0, 3, 6):
        for importance in IMPORTANCE_TYPES:
            scores = kept.model(step).get_score(importance_type=importance)
            total = sum(scores.values())
            for feature, score in scores.items():
                saved = trial.tensor(f"feature_importance/{importance}/{feature}").value(step)
                np.testing.assert_allclose(saved, [score / total], rtol=1e-12)
    names = trial.tensor_names(collection="feature_importance")
    assert {name.split("/")[1] for name in names} == set(IMPORTANCE_TYPES)


def test_hyperparameters_keep_their_kind(out):
    given = {"eta": 0.25, "max_depth": 4, "objective": "binary:logistic", "eval_metric": ["auc", "error"]}
    odd = {"monotone_constraints": (1, -1), "missing": None, "interaction": {"a": 1}, "verbose": True}
    data = matrix()
    hook = smd.Hook(out, include_collections=["hyperparameters"], hyperparameters={**given, **odd})
    xgboost.train({"max_depth": 2}, data, 1, callbacks=[hook])
    hook.close()
    trial = create_trial(out)
    saved = {
        name.split("/")[1]: trial.tensor(name).value(0).tolist()
        for name in trial.tensor_names(collection="hyperparameters")
    }
    assert saved == {
        "eta": [0.25],
        "max_depth": [4],
        "objective": ["binary:logistic"],
        "eval_metric": ["auc", "error"],
        "monotone_constraints": [1, -1],
        "interaction": ["{'a': 1}"],
        "verbose": [True],
    }


def expected_trees(model, step):
    pytest.importorskip("pandas")
    frame = model.trees_to_dataframe()
    per_round = len(model.get_dump()) // model.num_boosted_rounds()
    return frame[frame["Tree"] >= step * per_round], per_round


@pytest.mark.parametrize("kind", ["binary", "classes"])
def test_trees_are_those_of_the_round_as_the_model_shows_them(kind, out):
    trial, kept, _, _ = train(out, kind, names=["a", "b", "class", "bias_", "x/y"], include=["trees"])
    for step in (0, 3, 6):
        frame, per_round = expected_trees(kept.model(step), step)
        saved = {name: trial.tensor(f"trees/{name}").value(step) for name in frame.columns}
        assert len(set(saved["Tree"])) == per_round == (3 if kind == "classes" else 1)
        for name in ("Tree", "Node", "ID", "Feature"):
            assert saved[name].tolist() == frame[name].tolist()
        for name in ("Split", "Gain", "Cover"):
            np.testing.assert_array_equal(saved[name], frame[name].to_numpy(float))
        for name in ("Yes", "No", "Missing"):
            assert saved[name].tolist() == [str(entry) for entry in frame[name]]


@pytest.mark.filterwarnings("ignore:is_(sparse|categorical):DeprecationWarning")
def test_trees_name_the_categories_of_a_split(out):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    code = rng.integers(0, 6, 300)
    frame = pandas.DataFrame({"kind": pandas.Categorical(code), "size": rng.normal(size=300).astype(np.float32)})
    data = xgboost.DMatrix(frame, label=np.isin(code, [1, 4]), enable_categorical=True)
    hook = smd.Hook(out, include_collections=["trees"])
    model = xgboost.train(
        {"objective": "binary:logistic", "tree_method": "hist", "max_cat_to_onehot": 1}, data, 1, callbacks=[hook]
    )
    hook.close()
    root = json.loads(model.get_dump(dump_format="json")[0])
    trial = create_trial(out)
    assert trial.tensor("trees/Feature").value(0)[0] == root["split"] == "kind"
    named = trial.tensor("trees/Category").value(0)[0].split(",")
    assert sorted(map(int, named)) in ([1, 4], [0, 2, 3, 5])
    assert named == [str(category) for category in root["split_condition"]]


def test_a_feature_of_any_name_has_its_average(out):
    names = ["class", "bias", "rbias", "a-b", "x y"]
    trial, kept, *_ = train(out, names=names, include=["average_shap"], hook={"save_all": True})
    assert set(trial.tensor_names(collection="average_shap")) == {f"average_shap/{name}" for name in names}
    expected = np.abs(kept.model(6).predict(matrix(names=names), pred_contribs=True)).mean(axis=0, dtype=np.float64)
    averages = [trial.tensor(f"average_shap/{name}").value(6)[0] for name in names]
    np.testing.assert_allclose(averages, expected[:-1], rtol=1e-12)


def test_the_default_is_metrics_every_ten_rounds(out):
    data = matrix()
    hook = smd.Hook(out)
    xgboost.train(PARAMETERS["binary"], data, 25, evals=[(data, "train")], verbose_eval=False, callbacks=[hook])
    hook.close()
    trial = create_trial(out)
    assert sorted(trial.tensor_names()) == ["train-auc", "train-logloss"]
    assert trial.steps() == [0, 10, 20]


def test_everything_is_saved_when_all_is_asked_for(out):
    trial, *_ = train(out, include=(), hook={"save_all": True})
    for collection in EVERYTHING:
        assert trial.tensor_names(regex={"metrics": "-auc", "losses": "-logloss"}.get(collection, f"^{collection}"))
    assert trial.tensor("average_shap/f4").steps() == [0, 3, 6]


def test_a_regex_of_the_users_gets_what_it_names_and_nothing_else(out):
    trial, *_ = train(out, include=(), hook={"include_regex": "^average_shap/f[12]$|^predictions$"})
    names = {"average_shap/f1", "average_shap/f2", "predictions"}
    assert set(trial.tensor_names(collection="default")) == names
    assert set(trial.tensor_names()) == names | {"train-auc", "test-auc", "train-logloss", "test-logloss"}
