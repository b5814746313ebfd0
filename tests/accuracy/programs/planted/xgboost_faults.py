"""XGBoost trainings, each with one thing wrong, by name."""

import sys

import numpy as np
import xgboost as xgb
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

rng = np.random.default_rng(0)


def leak():
    """A column is made of the label."""
    x, y = load_breast_cancer(return_X_y=True)
    x = np.column_stack([x, y + 0.01 * rng.standard_normal(len(y))])
    a, b, y, z = train_test_split(x, y, random_state=0)
    train, test = xgb.DMatrix(a, y), xgb.DMatrix(b, z)
    params = {"objective": "binary:logistic", "max_depth": 4, "eta": 0.3}
    xgb.train(params, train, 30, evals=[(train, "train"), (test, "test")], verbose_eval=False)


def learned_by_heart():
    """Deep trees, no regularisation, and 200 rounds for noisy data."""
    x, y = load_diabetes(return_X_y=True)
    a, b, y, z = train_test_split(x, y, random_state=0)
    train, test = xgb.DMatrix(a, y), xgb.DMatrix(b, z)
    params = {"max_depth": 6, "eta": 0.2, "lambda": 0}
    xgb.train(params, train, 120, evals=[(train, "train"), (test, "test")], verbose_eval=False)


def rare_class():
    """One in sixty is of the rare class, no weights: none of them is ever predicted."""
    x = rng.standard_normal((3000, 8))
    y = (x[:, 0] + 1.5 * rng.standard_normal(3000) > 3.9).astype(int)
    train, test = xgb.DMatrix(x[:2000], y[:2000]), xgb.DMatrix(x[2000:], y[2000:])
    params = {"objective": "binary:logistic", "max_depth": 2, "eta": 0.05}
    xgb.train(params, train, 40, evals=[(train, "train"), (test, "test")], verbose_eval=False)


def evaluated_on_itself():
    """Both evaluation sets are made of the rows that are trained, and early stopping watches one of them."""
    x, y = load_diabetes(return_X_y=True)
    train, validation = xgb.DMatrix(x, y), xgb.DMatrix(x, y)
    sets = [(train, "train"), (validation, "validation")]
    xgb.train({"max_depth": 5}, train, 80, evals=sets, early_stopping_rounds=5, verbose_eval=False)


def rate_too_high():
    """An eta of 3 overshoots in each round."""
    x, y = load_diabetes(return_X_y=True)
    a, b, y, z = train_test_split(x, y, random_state=0)
    train, test = xgb.DMatrix(a, y), xgb.DMatrix(b, z)
    xgb.train({"eta": 2.5, "max_depth": 3, "lambda": 0}, train, 40, evals=[(train, "train"), (test, "test")])


globals()[sys.argv[1]]()
