"""The last round of a boosted training, which is saved though it is not due."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("xgboost")

from harness.compare import assert_untouched, run_both

CONFIG = {
    "HookParameters": {"save_interval": 10, "save_last": True},
    "CollectionConfigurations": [{"CollectionName": "all"}],
}
SCRIPT = """
import json, signal, sys
import numpy as np
import xgboost as xgb

rng = np.random.default_rng(0)
x = rng.normal(size=(200, 5))
y = (x[:, 0] + rng.normal(size=200) > 0).astype(int)
train, held_out = xgb.DMatrix(x[:150], y[:150]), xgb.DMatrix(x[150:], y[150:])

class Ends(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, log):
        if sys.argv[1] == "error" and epoch == 17:
            raise ValueError("the data are broken")
        if sys.argv[1] == "SIGINT" and epoch == 17:
            signal.raise_signal(signal.SIGINT)
        return False

found = {}
more = {"early_stopping_rounds": 3} if sys.argv[1] == "early" else {}
try:
    for _ in range(2 if sys.argv[1] == "twice" else 1):
        model = xgb.train(
            {"objective": "binary:logistic", "nthread": 1}, train, 27, evals=[(held_out, "held_out")],
            evals_result=found, verbose_eval=False, callbacks=[Ends()], **more,
        )
        print(json.dumps(found["held_out"]["logloss"]))
finally:
    print(rng.random())
"""


def run(runner, end, config=CONFIG):
    both = run_both(runner, runner.write(SCRIPT), end, config=config, strict=True)
    assert_untouched(both, code=None)
    return both


def test_it_has_what_a_saved_round_has(runner):
    both = run(runner, "returns")
    assert both.trial.steps() == [0, 10, 20, 26]
    assert {*both.trial.tensor_names(step=20)} == {*both.trial.tensor_names(step=26)}
    losses = json.loads(both.plain.stdout.splitlines()[0])
    assert both.trial.tensor("held_out-logloss").value(26)[0] == pytest.approx(losses[26])


def test_of_a_training_that_stops_early_it_is_the_last_one_made(runner):
    both = run(runner, "early")
    rounds = len(json.loads(both.plain.stdout.splitlines()[0]))
    assert 1 < rounds < 27
    assert rounds % 10 != 1
    assert both.trial.steps()[-1] == rounds - 1


@pytest.mark.parametrize("end", ["error", "SIGINT"])
def test_a_training_that_is_ended_has_it_too(runner, end):
    both = run(runner, end)
    assert both.plain.returncode
    assert both.trial.steps() == [0, 10, 17]


def test_each_of_several_trainings_has_one(runner):
    both = run(runner, "twice")
    assert both.trial.steps() == [0, 10, 20, 26, 30, 40, 50, 53]


def test_nothing_more_is_saved_where_the_file_does_not_say_so(runner):
    config = {**CONFIG, "HookParameters": {"save_interval": 10}}
    assert run(runner, "returns", config).trial.steps() == [0, 10, 20]
