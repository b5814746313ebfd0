"""SettingNotRead, on parameters of XGBoost that nothing reads, and on those that are the program's own."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.rules import SettingNotRead
from smd_agent.rules.finding import Severity

ROWS = np.random.RandomState(0).rand(60, 3)
LABELS = ROWS[:, 0] > 0.5
ROUNDS, STOPPING = "num_boost_round", "early_stopping_rounds"

WRONG = {
    "rounds of an estimator": ({"n_estimators": 300}, {ROUNDS: 10}, ["n_estimators/num_boost_round"]),
    "rounds of the argument": ({ROUNDS: np.int64(300)}, {ROUNDS: 10}, [f"{ROUNDS}/{ROUNDS}"]),
    "rounds of another booster": (
        {"num_round": 300, "booster": "gblinear"},
        {ROUNDS: 10},
        ["num_round/num_boost_round"],
    ),
    "patience": ({STOPPING: 5}, {"test": (ROWS, LABELS)}, [f"{STOPPING}/{STOPPING}"]),
    "no sign": ({"learningrate": 0.1}, {}, ["learningrate/learning_rate"]),
    "another sign": ({"max-depth": 3}, {}, ["max-depth/max_depth"]),
    "capitals": ({"Max_Depth": 3}, {}, ["Max_Depth/max_depth"]),
    "a letter more": ({"eval_metrics": ["mae"]}, {}, ["eval_metrics/eval_metric"]),
    "a letter less": ({"min_child_weigt": 3.0}, {}, ["min_child_weigt/min_child_weight"]),
    "another letter": ({"subsamble": 0.5}, {}, ["subsamble/subsample"]),
    "letters moved": ({"reg_labmda": 0.5}, {}, ["reg_labmda/reg_lambda"]),
    "text": ({"tree_methd": "hist"}, {}, ["tree_methd/tree_method"]),
}
GOOD = {
    "told twice": ({"n_estimators": 300}, {ROUNDS: 300, "told_rounds": True}),
    "told otherwise": ({"n_estimators": 300}, {ROUNDS: 40, "told_rounds": True}),
    "as many": ({"n_estimators": 10}, {ROUNDS: 10}),
    "no number": ({"n_estimators": (100, 300)}, {ROUNDS: 10}),
    "it goes on": ({"n_estimators": 300}, {ROUNDS: 10, "xgb_model": "another"}),
    "patience told too": ({STOPPING: 5}, {"test": (ROWS, LABELS), STOPPING: 5}),
    "nothing to stop by": ({STOPPING: 5}, {}),
    "aliases": ({"eta": 0.1, "lambda": 2, "alpha": 1, "n_jobs": 1, "random_state": 3, "min_split_loss": 0.1}, {}),
    "the right one too": ({"learningrate": 0.1, "eta": 0.1}, {}),
    "values to try": ({"max_depths": [2, 3], "learning_rates": (0.1, 0.2)}, {}),
    "numbered": ({"max_depth_2": 3, "max_depth2": 3}, {}),
    "the program's own": ({"run_name": "a", "lr_decay": 0.9, "folds": 5, "seeds": 3, "depth": 3}, {}),
    "of another part": ({"booster": "gblinear", "max_depth": 3, "subsample": 0.5, "rate_drop": 0.1}, {}),
    "nothing": ({"max_depht": None, "n_estimators": None}, {}),
    "no matter of the model": ({"verbosityy": 0, "random_stat": 3}, {}),
}


# XGBoost warns of them itself.
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", WRONG)
def test_a_parameter_that_nothing_reads(name, known_of_training):
    parameters, told, expected = WRONG[name]
    found = known_of_training(parameters, ROWS, LABELS, **told).findings(SettingNotRead())
    assert [one.tensor for one in found] == [f"data_facts/unread/{of}/default_holds" for of in expected]
    is_of_stopping = STOPPING in parameters
    assert [one.severity for one in found] == [Severity.NOTE if is_of_stopping else Severity.WARNING]
    assert found[0].evidence == ({"asked": 10} if told.get(ROUNDS) and "booster" not in parameters else {})


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", GOOD)
def test_parameters_that_are_right_or_the_programs_own(name, known_of_training):
    parameters, told = GOOD[name]
    verdict = known_of_training(parameters, ROWS, LABELS, **told).verdict(SettingNotRead())
    assert (verdict.judged, verdict.findings) == (["SettingNotRead"], [])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_early_stopping_as_a_callback(known_of_training):
    xgboost = pytest.importorskip("xgboost")
    callbacks = [xgboost.callback.EarlyStopping(rounds=5)]
    run = known_of_training({STOPPING: 5}, ROWS, LABELS, test=(ROWS, LABELS), callbacks=callbacks)
    assert run.verdict(SettingNotRead()).findings == []
