"""Gradient boosting on a noisy tabular problem with early stopping."""

import numpy as np
import xgboost as xgb
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

SEED = 19

PARAMS = {
    "objective": "binary:logistic",
    "eval_metric": "logloss",
    "eta": 0.15,
    "max_depth": 7,
    "subsample": 0.9,
    "colsample_bytree": 0.8,
    "tree_method": "hist",
    "nthread": 1,
    "seed": SEED,
}


def load():
    x, y = make_classification(
        n_samples=6000,
        n_features=40,
        n_informative=8,
        n_redundant=6,
        flip_y=0.25,
        class_sep=0.8,
        random_state=SEED,
    )
    x_fit, x_test, y_fit, y_test = train_test_split(x, y, test_size=0.25, random_state=SEED)
    x_tr, x_val, y_tr, y_val = train_test_split(x_fit, y_fit, test_size=0.25, random_state=SEED)
    return (x_tr, y_tr), (x_val, y_val), (x_test, y_test)


def report(booster, dmat, y, name, upto):
    p = booster.predict(dmat, iteration_range=(0, upto))
    print(f"{name:5s} logloss {log_loss(y, p):.4f}  acc {accuracy_score(y, p > 0.5):.4f}")


def main():
    (x_tr, y_tr), (x_val, y_val), (x_te, y_te) = load()
    dtrain = xgb.DMatrix(x_tr, label=y_tr)
    dvalid = xgb.DMatrix(x_val, label=y_val)
    dtest = xgb.DMatrix(x_te)

    history = {}
    booster = xgb.train(
        PARAMS,
        dtrain,
        num_boost_round=300,
        evals=[(dvalid, "valid"), (dtrain, "train")],
        early_stopping_rounds=20,
        evals_result=history,
        verbose_eval=20,
    )

    rounds = booster.best_iteration + 1
    print(f"stopped with {rounds} rounds, best score {booster.best_score:.4f}")
    print("lowest valid logloss", round(float(np.min(history["valid"]["logloss"])), 4))
    report(booster, dtrain, y_tr, "train", rounds)
    report(booster, dvalid, y_val, "valid", rounds)
    report(booster, dtest, y_te, "test", rounds)


if __name__ == "__main__":
    main()
