"""Trains an XGBoost model that finds the rare fraudulent payments."""

import numpy as np
import xgboost as xgb
from sklearn.datasets import make_classification
from sklearn.metrics import recall_score

x, y = make_classification(4000, 12, n_informative=6, weights=[0.93], class_sep=0.8, flip_y=0.02, random_state=5)
x_train, y_train, x_test, y_test = x[:3000], y[:3000], x[3000:], y[3000:]

weight = y_train.sum() / (len(y_train) - y_train.sum())
params = {
    "objective": "binary:logistic",
    "eval_metric": ["logloss", "error"],
    "max_depth": 4,
    "eta": 0.1,
    "scale_pos_weight": float(weight),
    "nthread": 1,
    "seed": 5,
}
dtrain, dtest = xgb.DMatrix(x_train, y_train), xgb.DMatrix(x_test, y_test)
booster = xgb.train(params, dtrain, num_boost_round=80, evals=[(dtrain, "train"), (dtest, "test")], verbose_eval=20)

flagged = booster.predict(dtest) > 0.5
print(f"frauds {int(y_test.sum())} flagged {int(flagged.sum())} recall {recall_score(y_test, flagged):.3f}")
print(f"mean score {np.mean(booster.predict(dtest)):.4f}")
