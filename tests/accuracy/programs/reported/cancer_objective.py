"""Trains XGBoost with a logistic objective of its own on the breast cancer table."""

import numpy as np
import xgboost as xgb
from sklearn.datasets import load_breast_cancer

data = load_breast_cancer()
order = np.random.default_rng(8).permutation(len(data.target))
x, y = data.data[order], data.target[order].astype(float)
dtrain, dtest = xgb.DMatrix(x[:400], y[:400]), xgb.DMatrix(x[400:], y[400:])


def logistic(scores, dmatrix):
    """Gradient and second derivative of the log loss, false alarms weighing double."""
    label = dmatrix.get_label()
    weight = np.where(label == 1, 1.0, 2.0)
    grad = weight * (scores - label)
    hess = weight * np.maximum(scores * (1 - scores), 1e-6)
    return grad, hess


def log_loss(scores, dmatrix):
    p = 1 / (1 + np.exp(-scores))
    label = dmatrix.get_label()
    return "logloss", float(-np.mean(label * np.log(p + 1e-9) + (1 - label) * np.log(1 - p + 1e-9)))


booster = xgb.train(
    {"max_depth": 3, "eta": 0.1, "base_score": 0.0, "nthread": 1, "disable_default_eval_metric": 1},
    dtrain,
    num_boost_round=80,
    evals=[(dtrain, "train"), (dtest, "test")],
    obj=logistic,
    custom_metric=log_loss,
    verbose_eval=20,
)
right = (booster.predict(dtest, output_margin=True) > 0) == (y[400:] > 0.5)
print(f"accuracy {right.mean():.3f}")
