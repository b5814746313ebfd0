"""XGBoost scripts run by ``verify``, and the lines that it prints."""

from __future__ import annotations

import pytest
from harness.verified import verify

pytest.importorskip("xgboost")
pytestmark = pytest.mark.cold

# Trains in all ways, and in the last one draws a number in one round because of the agent.
SCRIPT = """
import sys
import numpy as np, xgboost
np.random.seed(1)
data = xgboost.DMatrix(np.random.rand(40, 3), label=np.random.rand(40))
def squared(predicted, data):
    return predicted - data.get_label(), np.ones(len(predicted))
def judged(predicted, data):
    return "judged", float(np.abs(predicted - data.get_label()).mean())
class Draw(xgboost.callback.TrainingCallback):
    def before_iteration(self, model, epoch, evals_log):
        if epoch == 2 and "smd_agent" in sys.modules:
            np.random.rand()
        return False
model = xgboost.train({"max_depth": 2}, data, 3, evals=[(data, "d")], verbose_eval=False)
xgboost.train({"max_depth": 2}, data, 2, obj=squared, custom_metric=judged, evals=[(data, "d")], verbose_eval=False)
xgboost.cv({"max_depth": 2}, data, 2, nfold=3, seed=1)
model.update(data, 3)
print("done", flush=True)
xgboost.train({"max_depth": 2}, data, 5, evals=[(data, "d")], verbose_eval=False, callbacks=[Draw()])
"""


def lines_of(done):
    """The lines that are printed, by what they begin with."""
    assert done.stderr == ""
    return {line[:11].strip(): line[11:] for line in done.stdout.splitlines()}


def test_rounds_of_all_ways_to_train_are_compared_and_a_drawn_number_is_found(runner):
    done = runner.by_launcher("verify", "--every", "1", runner.write(SCRIPT))
    lines = lines_of(done)
    assert done.returncode == 1
    # 3 and 2 rounds, 2 of 3 folds, one by hand, and 2 before it is drawn.
    steps = 3 + 2 + 6 + 1 + 2
    assert lines["Verdict"] == f"different: with the agent the script does something else, from step {steps}"
    assert lines["First"] == f"random state of NumPy at step {steps}"
    assert lines["Before"] == f"steps 0 to {steps - 1} are the same with the agent and without"
    # One is not evaluated, and of the last one it comes later.
    assert (lines["Steps"], lines["Losses"]) == (str(steps), f"{steps - 2} values: the same")
    assert lines["Weights"].startswith(f"{steps} tensors")
    places = [int(lines[label].rpartition(", at number ")[2]) for label in ("Without", "With")]
    # A number of 64 bits is made of two.
    assert places[1] == places[0] + 2
    assert (lines["Stdout"], lines["Stderr"].partition(";")[0]) == ("1 line: the same", "0 lines")
    assert lines["Exit code"] == "0"


# Trains by labels that nobody has seeded in one round, and ends by an error.
DRAWING = """
import os, sys
import numpy as np, xgboost
np.random.seed(1)
class Draw(xgboost.callback.TrainingCallback):
    def before_iteration(self, model, epoch, evals_log):
        if epoch == 3:
            data.set_label(np.frombuffer(os.urandom(40), np.uint8))
        return False
data = xgboost.DMatrix(np.random.rand(40, 3), label=np.random.rand(40))
xgboost.train({}, data, 5, evals=[(data, "d")], verbose_eval=False, callbacks=[Draw()])
raise ValueError("at the end")
"""


def test_a_script_that_is_not_deterministic_is_told_so_and_steps_end_it_before(runner):
    script = runner.write(DRAWING)
    code, told = verify(runner, script)
    first = told["first_difference"]
    assert (code, told["verdict"], first["step"], first["what"]) == (3, "not deterministic", 3, "weight booster")
    assert (told["exit_codes"], told["stderr"]["difference"]) == ([1, 1, 1], None)
    # It is ended before it draws what nobody has seeded, and before the error.
    done = runner.by_launcher("verify", "--steps", "3", script)
    lines = lines_of(done)
    assert done.returncode == 0
    assert lines["Verdict"] == "equal: with the agent the script does the same, bit for bit"
    assert lines["Steps"] == "3, after which the script was ended in each run (--steps 3)"
    assert lines["Random"].startswith("NumPy: the same")
    assert lines["Exit code"] == "0"
