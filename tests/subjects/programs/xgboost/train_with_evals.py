"""Binary classification by xgboost.train: two evaluation sets, early stopping, importance, and the model as JSON."""

import argparse
import json

import numpy as np
import xgboost as xgb


def make_data(n, rng):
    X = rng.normal(size=(n, 6))
    y = (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.3 * rng.normal(size=n) > 0).astype(int)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_depth", type=int, default=3)
    parser.add_argument("--eta", type=float, default=0.3)
    parser.add_argument("--subsample", type=float, default=0.8)
    parser.add_argument("--num_round", type=int, default=12)
    args, _ = parser.parse_known_args()
    rng = np.random.default_rng(1)
    names = [f"sensor_{letter}" for letter in "abcdef"]
    dtrain = xgb.DMatrix(*make_data(300, rng), feature_names=names)
    dvalid = xgb.DMatrix(*make_data(100, rng), feature_names=names)
    params = {
        "max_depth": args.max_depth,
        "eta": args.eta,
        "subsample": args.subsample,
        "objective": "binary:logistic",
        "eval_metric": ["logloss", "auc"],
        "nthread": 1,
        "seed": 4,
    }
    result = {}
    bst = xgb.train(
        params,
        dtrain,
        args.num_round,
        evals=[(dtrain, "train"), (dvalid, "validation")],
        evals_result=result,
        early_stopping_rounds=8,
        verbose_eval=False,
    )
    for number, value in enumerate(result["validation"]["logloss"]):
        print(f"[{number}] validation-logloss:{value:.5f}")
    print("best iteration", bst.best_iteration, "score", bst.best_score)
    for name, gain in sorted(bst.get_score(importance_type="gain").items(), key=lambda item: -item[1]):
        print(f"{name:10s} {gain:.4f}")
    bst.save_model("model.json")
    with open("metrics.json", "w") as file:
        json.dump(result, file)
    print(np.random.default_rng(2).random(), float(bst.predict(dvalid).sum()))


if __name__ == "__main__":
    main()
