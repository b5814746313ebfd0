"""A training of many short rounds."""

import hashlib

import numpy as np
import xgboost

random = np.random.default_rng(0)
x = random.normal(size=(60, 5))
y = (x[:, 0] + random.normal(size=60) / 4 > 0).astype(float)
train, test = xgboost.DMatrix(x[:40], label=y[:40]), xgboost.DMatrix(x[40:], label=y[40:])
results = {}
parameters = {"objective": "binary:logistic", "nthread": 1, "max_depth": 3, "subsample": 0.8, "seed": 3}
booster = xgboost.train(
    parameters, train, 30, evals=[(train, "train"), (test, "test")], evals_result=results, verbose_eval=False
)
print(results["test"]["logloss"][-1], hashlib.sha1(booster.save_raw()).hexdigest())
