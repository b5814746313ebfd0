"""A custom objective and two custom metrics: one shall be small, the other large, by which training stops."""

import json

import numpy as np
import xgboost as xgb
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split


def log_cosh(predt, dtrain):
    error = predt - dtrain.get_label()
    return np.tanh(error), 1 / np.cosh(np.clip(error, -20, 20)) ** 2


def scores(predt, dtrain):
    y = dtrain.get_label()
    return [("mean_abs", float(np.mean(np.abs(predt - y)))), ("r2", float(r2_score(y, predt)))]


def main():
    np.random.seed(9)
    X, y = load_diabetes(return_X_y=True)
    y = (y - y.mean()) / y.std()
    X_train, X_valid, y_train, y_valid = train_test_split(X, y, test_size=0.25, random_state=9)
    dtrain, dvalid = xgb.DMatrix(X_train, y_train), xgb.DMatrix(X_valid, y_valid)
    results = {}
    booster = xgb.train(
        {"eta": 0.3, "max_depth": 3, "disable_default_eval_metric": True, "nthread": 1, "base_score": 0.0},
        dtrain,
        num_boost_round=14,
        obj=log_cosh,
        custom_metric=scores,
        evals=[(dtrain, "train"), (dvalid, "valid")],
        evals_result=results,
        callbacks=[xgb.callback.EarlyStopping(rounds=20, metric_name="r2", data_name="valid", maximize=True)],
        verbose_eval=False,
    )
    for number, (small, large) in enumerate(zip(results["valid"]["mean_abs"], results["valid"]["r2"])):
        print(f"[{number}] mean_abs {small:.6f} r2 {large:.6f}")
    print("best", booster.best_iteration, round(booster.best_score, 6))
    booster.save_model("log_cosh.ubj")
    with open("results.json", "w") as file:
        json.dump(results, file)
    print(np.random.rand())


if __name__ == "__main__":
    main()
