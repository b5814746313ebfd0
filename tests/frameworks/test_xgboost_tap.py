"""A running XGBoost training, which saves more, a round whole, or ends when ``tap`` asks for it."""

from __future__ import annotations

import pytest

pytest.importorskip("xgboost")

from harness.tapped import TappedRun

from smd_agent.analysis.trial import create_trial

TRAIN = """
import time, numpy, xgboost

class Slow(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        self.last = epoch
        time.sleep(0.02)
        return False

random = numpy.random.default_rng(0)
x = random.normal(size=(200, 4)); data = xgboost.DMatrix(x, label=x[:, 0] > 0)
slow = Slow()
model = xgboost.train({"objective": "binary:logistic", "max_depth": 2, "nthread": 1}, data, 5000,
                      evals=[(data, "train")], verbose_eval=False, callbacks=[slow])
print("trained", model.num_boosted_rounds(), slow.last)
"""


def test_it_obeys(tmp_path):
    with TappedRun(tmp_path, TRAIN) as run:
        code, said = run.tap("--collection", "trees", "--collection", "feature_importance", "--steps", "3")
        trees = run.answers()[0]
        assert (code, said) == (0, f"worker_0: {trees['text']}\n")
        assert run.tap("--dump")[0] == 0
        assert run.tap("--collection", "gradients")[1].startswith("worker_0: refused: there is no collection gradients")
        code, said = run.tap("--stop", "enough")
        assert code == 0
        assert run.ended() == 0
    trial = create_trial(str(run.run))
    whole, stopped = run.answers()[1]["step"], run.answers()[3]["step"]
    steps = trial.tensor(trial.tensor_names(regex="^trees/")[0]).steps()
    assert steps == [*range(trees["step"], trees["step"] + 3), whole]
    assert trial.tensor_names(step=whole, regex="^predictions$")
    # The round is whole, for the program's own callbacks too, and the script goes on behind the training.
    assert said == f"worker_0: obeyed: XGBoost ends the training after step {stopped}\n"
    assert run.printed == f"trained {stopped + 1} {stopped}\n"
    assert f"smd_agent: stopped after step {stopped}: enough (asked by tap)\n" in run.said
