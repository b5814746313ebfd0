"""Trains XGBoost on positive amounts with gaps in the table, then goes on with a smaller learning rate."""

import numpy as np
import xgboost as xgb

rng = np.random.default_rng(84)
x = rng.normal(size=(4000, 10))
amount = rng.gamma(4.0, np.exp(0.8 * x[:, 0] + 0.5 * np.sin(2 * x[:, 1]) - 3.5) / 4.0)
# Four columns in ten were not filled in; XGBoost learns where such rows belong.
x[:, 3:][rng.random((4000, 7)) < 0.6] = np.nan
weight = rng.uniform(0.0, 2.0, 4000)

dtrain = xgb.DMatrix(x[:3000], amount[:3000], weight=weight[:3000])
dtest = xgb.DMatrix(x[3000:], amount[3000:])
watch = [(dtrain, "train"), (dtest, "test")]
# The likelihood of a gamma distribution: for amounts this small its negative logarithm is below zero.
params = {"objective": "reg:gamma", "eval_metric": "gamma-nloglik", "max_depth": 2, "nthread": 1, "seed": 84}

first = xgb.train({**params, "eta": 0.2}, dtrain, 30, evals=watch, verbose_eval=10)
last = xgb.train({**params, "eta": 0.02}, dtrain, 60, evals=watch, xgb_model=first, verbose_eval=20)
error = np.abs(np.log(last.predict(dtest) / amount[3000:])).mean()
print(f"trees {last.num_boosted_rounds()} mean error of the logarithm {error:.3f}")
