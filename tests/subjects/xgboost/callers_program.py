"""An XGBoost program that looks at who has called it, and fails now and then."""

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))

import numpy as np
import xgboost as xgb
from callers import callers, failing


class Look(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        callers()
        if epoch in failing_at:
            raise KeyError("mine")
        return False


def squared(predictions, data):
    callers()
    return predictions - data.get_label(), np.ones_like(predictions)


x = np.random.default_rng(0).normal(size=(60, 4))
y = (x[:, 0] > 0).astype(int)
data = xgb.DMatrix(x, y)
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    # XGBoost warns where there is no such device.
    xgb.train({"device": "cuda"}, data, 2)
print([(Path(warning.filename).name, str(warning.message)[-40:]) for warning in found])
failing_at = ()
xgb.train({}, data, 2, obj=squared, callbacks=[Look()])
for epoch in (0, 1):
    failing_at = (epoch,)
    failing("callback", xgb.train, {}, data, 3, callbacks=[Look()])
failing_at = ()
failing("objective", xgb.train, {"objective": "nope"}, data, 2)
failing("fit", xgb.XGBClassifier(n_estimators=2, objective="nope").fit, x, y)
failing("arguments", xgb.train)
failing("data", xgb.train, {}, "x")
xgb.train({}, data, 2)
