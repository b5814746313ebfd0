"""A training of many short rounds; told to, it notes the loss of each."""

import hashlib
import os

import numpy as np
import xgboost

random = np.random.default_rng(0)
x = random.normal(size=(60, 5))
y = (x[:, 0] + random.normal(size=60) / 4 > 0).astype(float)
train, test = xgboost.DMatrix(x[:40], label=y[:40]), xgboost.DMatrix(x[40:], label=y[40:])
notes = os.open(os.environ.get("NOTES", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)


class Notes(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        os.write(notes, f"{evals_log['train']['logloss'][-1]!r}\n".encode())
        return False


results = {}
parameters = {"objective": "binary:logistic", "nthread": 1, "max_depth": 3, "subsample": 0.8, "seed": 3}
booster = xgboost.train(
    parameters,
    train,
    int(os.environ.get("STEPS", "30")),
    evals=[(train, "train"), (test, "test")],
    evals_result=results,
    verbose_eval=False,
    callbacks=[Notes()],
)
print(results["test"]["logloss"][-1], hashlib.sha1(booster.save_raw()).hexdigest())
