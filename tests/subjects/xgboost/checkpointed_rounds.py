"""A training of many short rounds that goes on from its last checkpoint; told to, it is killed after one."""

import hashlib
import os
import signal
import time

import numpy as np
import xgboost

ROUNDS = 30
FOLDER = "checkpoints"
random = np.random.default_rng(0)
x = random.normal(size=(60, 5))
y = (x[:, 0] + random.normal(size=60) / 4 > 0).astype(float)
train, test = xgboost.DMatrix(x[:40], label=y[:40]), xgboost.DMatrix(x[40:], label=y[40:])


class Checkpoints(xgboost.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        if model.num_boosted_rounds() % 10 == 0:
            os.makedirs(FOLDER, exist_ok=True)
            path = os.path.join(FOLDER, f"{model.num_boosted_rounds()}.json")
            model.save_model(f"{path}.new.json")
            os.replace(f"{path}.new.json", path)
            while "KILLED" in os.environ:
                if os.path.exists(os.path.join(FOLDER, "metadata.json")):
                    os.kill(os.getpid(), signal.SIGKILL)
                time.sleep(0.001)
        return False


made = [int(name[:-5]) for name in (os.listdir(FOLDER) if os.path.exists(FOLDER) else ()) if name[:-5].isdigit()]
before = os.path.join(FOLDER, f"{max(made)}.json") if made else None
results = {}
parameters = {"objective": "binary:logistic", "nthread": 1, "max_depth": 3, "subsample": 0.8, "seed": 3}
booster = xgboost.train(
    parameters,
    train,
    ROUNDS - max(made, default=0),
    evals=[(train, "train"), (test, "test")],
    evals_result=results,
    verbose_eval=False,
    xgb_model=before,
    callbacks=[Checkpoints()],
)
print(results["test"]["logloss"][-1], hashlib.sha1(booster.save_raw()).hexdigest())
