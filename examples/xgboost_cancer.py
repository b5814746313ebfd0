"""Train a boosted classifier on scikit-learn's breast-cancer measurements."""

import argparse

import xgboost as xgb
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    train_x, test_x, train_y, test_y = train_test_split(
        data.data, data.target, test_size=0.25, random_state=args.seed, stratify=data.target
    )
    train = xgb.DMatrix(train_x, label=train_y, feature_names=names)
    test = xgb.DMatrix(test_x, label=test_y, feature_names=names)
    params = {
        "objective": "binary:logistic",
        "eval_metric": ["logloss", "auc"],
        "max_depth": 3,
        "eta": 0.1,
        "subsample": 0.8,
        "seed": args.seed,
    }
    model = xgb.train(
        params, train, args.rounds, evals=[(train, "train"), (test, "test")], early_stopping_rounds=20, verbose_eval=10
    )
    wrong = (model.predict(test) > 0.5) != test_y
    print(f"best round {model.best_iteration}, {wrong.sum()} of {len(test_y)} test samples wrong")


if __name__ == "__main__":
    main()
