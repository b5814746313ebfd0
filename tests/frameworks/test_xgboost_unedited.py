"""Scripts that know nothing of the agent: same models and output with and without it, every way to train seen."""

from __future__ import annotations

import json
import re

import pytest

xgboost = pytest.importorskip("xgboost")
pytest.importorskip("sklearn")

from harness.compare import assert_untouched, own_lines, run_both

from smd_agent.analysis.trial import create_trial

START = """
import hashlib, pickle, random, sys
import numpy as np, xgboost as xgb
random.seed(1), np.random.seed(2)
rng = np.random.default_rng(0)
X = rng.normal(size=(240, 5)).astype(np.float32)
y = (X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=240) > 0.5).astype(int)
dtrain, dtest = xgb.DMatrix(X[:180], y[:180]), xgb.DMatrix(X[180:], y[180:])
evals = [(dtrain, "train"), (dtest, "test")]
binary = {"objective": "binary:logistic", "max_depth": 3, "subsample": 0.7, "colsample_bytree": 0.8, "nthread": 1}
def show(*models):
    for model in models:
        print(hashlib.sha256(bytes(model.save_raw(raw_format="ubj"))).hexdigest(), sorted(model.attributes().items()))
    print(sys.argv[1:], random.random(), np.random.random())
"""
# Before XGBoost 2, whether the monitor or early stopping comes first is left to chance: with it, nothing is printed.
# What a script does, and how many rounds it trains; None where XGBoost decides.
WAYS = {
    "train": ("show(xgb.train(binary, dtrain, 6, evals=evals, evals_result=(log := {}))); print(log)", 6),
    "positional": ("show(xgb.train(binary, dtrain, 6))", 6),
    "dart": ('show(xgb.train({**binary, "booster": "dart", "rate_drop": 0.4}, dtrain, 8, evals=evals))', 8),
    "linear": (
        'show(xgb.train({"booster": "gblinear", "updater": "coord_descent", "feature_selector": "random"}, dtrain, 5,'
        " evals=evals))",
        5,
    ),
    "early stopping": (
        'fast = {**binary, "eta": 1.0}\n'
        "model = xgb.train(fast, dtrain, 90, evals=evals, early_stopping_rounds=3, verbose_eval=False)\n"
        "show(model); print(model.best_iteration, model.best_score, model.num_boosted_rounds())",
        None,
    ),
    "best model": (
        'stop = xgb.callback.EarlyStopping(2, save_best=True, metric_name="logloss", data_name="test")\n'
        "show(model := xgb.train(binary, dtrain, 90, evals=evals, verbose_eval=False, callbacks=[stop]))\n"
        "print(model.num_boosted_rounds())",
        None,
    ),
    "own callbacks": (
        "class Own(xgb.callback.TrainingCallback):\n"
        "    def after_iteration(self, model, epoch, log):\n"
        '        print("own", epoch, list(log)); return epoch == 3\n'
        "rates = xgb.callback.LearningRateScheduler(lambda round: 0.5 / (round + 1))\n"
        "mine = [rates, Own()]\n"
        "show(xgb.train(binary, dtrain, 9, evals=evals, verbose_eval=False, callbacks=iter(mine))); print(len(mine))",
        4,
    ),
    "continued": (
        "first = xgb.train(binary, dtrain, 3)\nshow(first, xgb.train(binary, dtrain, 4, xgb_model=first))",
        7,
    ),
    "early bound": (
        "from functools import partial\nfrom xgboost import train\nshow(partial(train, binary)(dtrain, 5))",
        5,
    ),
    "own objective": (
        "def squared(preds, data):\n    return preds - data.get_label(), np.ones_like(preds)\n"
        'def wrong(preds, data):\n    return "wrong", float(np.mean((preds > 0.5) != data.get_label()))\n'
        'show(xgb.train({"max_depth": 2, "disable_default_eval_metric": 1}, dtrain, 5, evals=evals, obj=squared,'
        " custom_metric=wrong))",
        5,
    ),
    "quantile": (
        "d = xgb.QuantileDMatrix(X, y)\nshow(xgb.train({**binary, 'tree_method': 'hist'}, d, 5, evals=[(d, 'd')]))",
        5,
    ),
    "sparse": (
        "import scipy.sparse as sp\nd = xgb.DMatrix(sp.csr_matrix(X * (X > 0)), y)\n"
        "show(xgb.train(binary, d, 5, evals=[(d, 'd')]))",
        5,
    ),
    "frame": (
        "import pandas as pd\nd = xgb.DMatrix(pd.DataFrame(X, columns=list('abcde')), y)\n"
        "show(xgb.train(binary, d, 5, evals=[(d, 'd')]))",
        5,
    ),
    "classifier": (
        "model = xgb.XGBClassifier(n_estimators=6, max_depth=3, subsample=0.5, random_state=3,"
        " early_stopping_rounds=9)\n"
        "model.fit(X[:180], y[:180], eval_set=[(X[180:], y[180:])], verbose=False)\n"
        "show(model.get_booster()); print(model.evals_result(), model.get_params())\n"
        "print(hashlib.sha256(pickle.dumps(model)).hexdigest(), model.predict_proba(X[:3]).tolist())",
        6,
    ),
    "classes": (
        "model = xgb.XGBClassifier(n_estimators=5, max_depth=2).fit(X, np.digitize(X[:, 0], [-1, 0, 1]))\n"
        "show(model.get_booster())",
        5,
    ),
    "regressor": ("show(xgb.XGBRegressor(n_estimators=5).fit(X, X[:, 0] * X[:, 1]).get_booster())", 5),
    "ranker": (
        "model = xgb.XGBRanker(n_estimators=5, objective='rank:pairwise')\n"
        "model.fit(X, y, qid=np.arange(240) // 12, verbose=False); show(model.get_booster())",
        5,
    ),
    "forest": (
        "show(xgb.XGBRFClassifier(n_estimators=7, max_depth=3, random_state=1).fit(X, y).get_booster())",
        1,
    ),
    "cross-validation": (
        'found = xgb.cv(binary, dtrain, 6, nfold=3, metrics=["auc", "logloss"], as_pandas=False, verbose_eval=2)\n'
        "print(found); show()",
        6,
    ),
    "search": (
        "from sklearn.model_selection import GridSearchCV\n"
        "found = GridSearchCV(xgb.XGBClassifier(n_estimators=3), {'max_depth': [1, 2]}, cv=2).fit(X, y)\n"
        "print(found.best_params_, found.cv_results_['mean_test_score']); show(found.best_estimator_.get_booster())",
        15,
    ),
    "no names": ("callback = None\nshow(xgb.train(binary, dtrain, 3, callbacks=None))", 3),
}
CHEAP = [{"CollectionName": name} for name in ("metrics", "hyperparameters")]
EVERYTHING = [
    {"CollectionName": name}
    for name in (
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
]


def config(interval=1, collections=EVERYTHING, **more):
    return {"HookParameters": {"save_interval": interval, **more}, "CollectionConfigurations": collections}


@pytest.fixture
def script(runner):
    return lambda body: runner.write(START + body + "\n")


def rounds_in(path):
    return create_trial(str(path)).steps()


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_train_is_seen_and_left_as_it_is(way, script, runner, tmp_path):
    pytest.importorskip("pandas")
    body, rounds = WAYS[way]
    both = run_both(runner, script(body), "--an", "argument", config=config())
    assert_untouched(both)
    assert "failed" not in both.agent.stderr
    steps = rounds_in(tmp_path / "run")
    assert steps == list(range(len(steps) if rounds is None else rounds))
    if rounds is None:
        assert len(steps) == int(re.findall(r"\d+", both.plain.stdout.splitlines()[-1])[-1]) or way == "best model"


def test_what_xgboost_logs_of_our_calls_is_not_printed(script, runner):
    body = "xgb.train({**binary, 'verbosity': 3}, dtrain, 3, evals=evals)"
    both = run_both(runner, script(body), config=config())
    assert "full_shap" in both.agent.stderr
    # XGBoost prints how long things took.
    assert_untouched(both, seen=lambda text: len(text.splitlines()))
    assert len(both.plain.stdout.splitlines()) > 10


@pytest.mark.parametrize("way", ["early stopping", "best model", "own callbacks"])
def test_the_round_that_stops_a_training_is_saved_too(way, script, runner, tmp_path):
    body = WAYS[way][0] + "\nprint('rounds', len(log['test']['logloss']))"
    body = body.replace("evals=evals", "evals=evals, evals_result=(log := {})")
    result = runner.by_variable(script(body), config=config(1, CHEAP))
    assert result.returncode == 0, result.stderr
    assert len(rounds_in(tmp_path / "run")) == int(result.stdout.split()[-1])


@pytest.mark.cold
def test_what_is_saved_is_what_the_script_saw(script, runner, tmp_path):
    body = (
        "import json\n"
        "model = xgb.train(binary, dtrain, 5, evals=evals, evals_result=(log := {}), verbose_eval=False)\n"
        "more = {'predictions': model.predict(dtest).tolist()}\n"
        "more |= {'shap': model.predict(dtrain, pred_contribs=True).tolist()}\n"
        "print(json.dumps({**more, 'log': log, 'labels': y[180:].tolist()}))"
    )
    result = runner.by_launcher("--config", runner.hook_file("run", config(4)), script(body))
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout.splitlines()[-1])
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 4]
    assert trial.tensor("predictions").value(4).tolist() == pytest.approx(seen["predictions"], rel=0)
    assert trial.tensor("full_shap/matrix").value(4).tolist() == seen["shap"]
    assert trial.tensor("labels").value(4).tolist() == seen["labels"]
    for data, metrics in seen["log"].items():
        for metric, series in metrics.items():
            assert trial.tensor(f"{data}-{metric}").value(4) == [series[4]]
    parameters = {"objective": "binary:logistic", "max_depth": 3, "subsample": 0.7, "num_boost_round": 5}
    for name, value in parameters.items():
        assert trial.tensor(f"hyperparameters/{name}").value(0).tolist() == [value]


def test_cross_validation_saves_mean_and_deviation_over_the_folds(script, runner, tmp_path):
    body = "import json\nprint(json.dumps(xgb.cv(binary, dtrain, 4, nfold=3, metrics='auc', as_pandas=False)))"
    result = runner.by_variable(script(body), config=config())
    assert result.returncode == 0, result.stderr
    trial = create_trial(str(tmp_path / "run"))
    for name, series in json.loads(result.stdout).items():
        assert [trial.tensor(name).value(step)[0] for step in range(4)] == series
    assert sorted(trial.tensor_names(collection="losses")) == []
    of_losses, line = sorted(line for line in result.stderr.splitlines() if "cannot be saved" in line)
    assert of_losses.endswith("losses cannot be saved: of auc it is not known that less is better")
    names, _, reason = line.removeprefix("smd_agent: ").partition(" cannot be saved: ")
    assert reason == "xgboost.cv trains a model for each fold"
    alike = {"predictions", "labels", "full_shap", "average_shap", "trees", "feature_importance"}
    assert {*names.split(", ")} == alike
    assert {name for name, why in trial.collection_manager.cannot_save.items() if why == reason} == alike


def test_a_second_training_is_numbered_on_and_said_once(script, runner, tmp_path):
    body = "for rounds in (3, 2, 2):\n    xgb.train(binary, dtrain, rounds, evals=evals, verbose_eval=False)"
    result = runner.by_variable(script(body), config=config(1, CHEAP))
    assert rounds_in(tmp_path / "run") == list(range(7))
    assert result.stderr.count("another training begins: its rounds are numbered from 3 on") == 1


def test_a_training_inside_another_is_left_alone(script, runner, tmp_path):
    body = (
        "class Inner(xgb.callback.TrainingCallback):\n"
        "    def after_iteration(self, model, epoch, log):\n"
        "        xgb.train(binary, dtrain, 2); return False\n"
        "xgb.train(binary, dtrain, 3, callbacks=[Inner()]); xgb.train(binary, dtrain, 1)"
    )
    result = runner.by_variable(script(body), config=config(1, CHEAP))
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("a training that runs inside or beside another one is not saved") == 1
    assert rounds_in(tmp_path / "run") == [0, 1, 2, 3]


@pytest.mark.cold
def test_a_failing_training_fails_as_without_us_and_the_next_is_saved(script, runner, tmp_path):
    body = (
        "class Fails(xgb.callback.TrainingCallback):\n"
        "    def after_iteration(self, model, epoch, log):\n"
        "        if epoch == 1: raise KeyError('mine')\n"
        "        return False\n"
        "try:\n    xgb.train(binary, dtrain, 5, callbacks=[Fails()])\n"
        "except KeyError as error:\n    print(error)\n"
        "xgb.train(binary, dtrain, 2)\nxgb.train(binary, 'no data')"
    )
    both = run_both(runner, script(body), config=config(1, CHEAP))
    # The traceback goes through a function of ours.
    assert_untouched(both, code=1, stderr=False)
    assert both.plain.stdout == "'mine'\n"
    assert own_lines(both.agent)[-1] == own_lines(both.plain)[-1]
    assert rounds_in(tmp_path / "run") == [0, 1, 2, 3]


def test_wrong_callbacks_get_xgboosts_own_message(script, runner):
    body = "try:\n    xgb.train(binary, dtrain, 2, callbacks=7)\nexcept TypeError as error:\n    print(error)"
    both = run_both(runner, script(body), config=config())
    assert_untouched(both)
    assert both.plain.stdout != ""


@pytest.mark.cold
def test_functions_look_as_before(script, runner):
    body = (
        "import inspect, xgboost.sklearn, xgboost.training\n"
        "for f in (xgb.train, xgb.cv):\n    print(inspect.signature(f), f.__name__, f.__module__, len(f.__doc__))\n"
        "print(pickle.dumps(xgb.train), pickle.loads(pickle.dumps(xgb.cv)) is xgb.cv)\n"
        "print(xgb.train is xgboost.training.train is xgboost.sklearn.train)"
    )
    both = run_both(runner, script(body), config=config())
    assert_untouched(both)
    assert both.plain.stdout != ""


def test_nothing_trained_is_said_by_the_launcher(script, runner):
    result = runner.by_launcher("--config", runner.hook_file("run", config()), script("print('no training')"))
    assert "nothing was captured: no training was seen (a call of xgboost.train or xgboost.cv)" in result.stderr


@pytest.mark.cold
@pytest.mark.parametrize("off", ["0", "off"])
def test_the_kill_switch_leaves_xgboost_alone(off, script, runner, tmp_path):
    body = "print(hasattr(xgb.train, '__wrapped__'))"
    assert_untouched(run_both(runner, script(body), config=config(), USE_SMDEBUG=off))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "params, data, lines",
    [
        (
            "binary",
            "[]",
            {
                "metrics, losses, predictions, labels": "there is no evaluation data (evals of xgboost.train, eval_set"
                " of fit)\n",
            },
        ),
        (
            '{"booster": "gblinear"}',
            "evals",
            {
                "feature_importance, trees, average_shap, full_shap": "the booster gblinear has no trees, allowed are"
                " gbtree and dart"
            },
        ),
    ],
    ids=["no evaluation data", "linear booster"],
)
def test_what_cannot_be_had_is_said_in_one_line_and_the_rest_saved(params, data, lines, script, runner, tmp_path):
    result = runner.by_variable(script(f"xgb.train({params}, dtrain, 4, evals={data})"), config=config(2))
    assert result.returncode == 0, result.stderr
    for collections, reason in lines.items():
        assert result.stderr.count(f"smd_agent: {collections} cannot be saved: {reason}") == 1
    assert result.stderr.count("cannot be saved") == len(lines)
    assert "came up in a step" not in result.stderr
    trial = create_trial(str(tmp_path / "run"))
    saved = {entry["CollectionName"] for entry in EVERYTHING if trial.tensor_names(collection=entry["CollectionName"])}
    missing = {*", ".join(lines).split(", ")}
    assert saved == {entry["CollectionName"] for entry in EVERYTHING} - missing
    assert trial.steps() == [0, 2]


def test_a_killed_training_leaves_every_round_that_had_begun_another(script, runner, tmp_path):
    body = (
        "import os, signal\n"
        "class Kill(xgb.callback.TrainingCallback):\n"
        "    def before_iteration(self, model, epoch, log):\n"
        "        if epoch == 6:\n"
        "            import time; time.sleep(0.5); os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return False\n"
        "xgb.train(binary, dtrain, 9, evals=evals, callbacks=[Kill()])"
    )
    result = runner.by_variable(script(body), config=config(2))
    assert result.returncode == -9
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 2, 4]
    for name in trial.tensor_names():
        for step in trial.tensor(name).steps():
            trial.tensor(name).value(step)


def test_a_hook_of_the_scripts_own_is_the_only_one_and_gets_the_data_of_the_call(script, runner, tmp_path):
    body = (
        "import smd_agent.xgboost as smd\n"
        f"hook = smd.Hook({str(tmp_path / 'own')!r}, save_config=smd.SaveConfig(save_interval=2),"
        " include_collections=['predictions', 'full_shap', 'hyperparameters'])\n"
        "model = xgb.train(binary, dtrain, 3, evals=evals, callbacks=[hook])\n"
        "print('seen', model.predict(dtest).tolist())"
    )
    result = runner.by_variable(script(body), config=config())
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "run").exists()
    trial = create_trial(str(tmp_path / "own"))
    assert trial.steps() == [0, 2]
    assert trial.tensor("predictions").value(2).tolist() == json.loads(result.stdout.split("seen ")[1])
    assert trial.tensor("full_shap/matrix").value(2).shape == (180, 6)
    assert trial.tensor("hyperparameters/max_depth").value(2) == [3]


@pytest.mark.cold
def test_a_training_beside_another_frameworks_run_has_a_folder_beside_it(script, runner, tmp_path):
    pytest.importorskip("torch")
    body = (
        "import torch\nfrom torch import nn\n"
        "model = nn.Linear(3, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for _ in range(2):\n"
        "    nn.MSELoss()(model(torch.ones(4, 3)), torch.ones(4, 2)).backward()\n    optimizer.step()\n"
        "xgb.train(binary, dtrain, 3, evals=evals)\nprint('trained')"
    )
    result = runner.by_variable(script(body), config=config(1, [{"CollectionName": "losses"}]))
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "trained"), result.stderr
    assert result.stderr.count(f"to {tmp_path / 'run-2'} (this process is writing to {tmp_path / 'run'})") == 1
    trial = create_trial(str(tmp_path / "run"))
    assert trial.tensor_names() == ["MSELoss_output_0"]
    assert trial.steps() == [0, 1]
    beside = create_trial(str(tmp_path / "run-2"))
    assert beside.steps() == [0, 1, 2]
    for opened in (trial, beside):
        opened.maybe_refresh()
        assert opened.loaded_all_steps
