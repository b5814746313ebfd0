"""Rare-event detection with XGBoost on an imbalanced synthetic table."""

import numpy as np
import xgboost as xgb
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, f1_score, recall_score
from sklearn.model_selection import train_test_split
from sklearn.utils import resample

SEED = 23


def load():
    return make_classification(
        n_samples=12000,
        n_features=30,
        n_informative=6,
        n_redundant=4,
        weights=[0.96, 0.04],
        flip_y=0.02,
        class_sep=0.7,
        random_state=SEED,
    )


def balance(x, y):
    """repeat minority rows until both classes have the same size"""
    minority = np.flatnonzero(y == 1)
    majority = np.flatnonzero(y == 0)
    extra = resample(minority, replace=True, n_samples=len(majority), random_state=SEED)
    rows = np.concatenate([majority, extra])
    np.random.default_rng(SEED).shuffle(rows)
    return x[rows], y[rows]


class EveryTen(xgb.callback.TrainingCallback):
    def after_iteration(self, model, epoch, evals_log):
        if epoch % 10 == 0:
            line = "  ".join(
                f"{name}-{metric} {values[-1]:.4f}" for name, log in evals_log.items() for metric, values in log.items()
            )
            print(f"round {epoch:3d}  {line}")
        return False


def main():
    x, y = load()
    print(f"{len(y)} rows, {y.mean():.3%} positive")
    x, y = balance(x, y)
    x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.25, random_state=SEED, stratify=y)

    model = xgb.XGBClassifier(
        n_estimators=200,
        learning_rate=0.1,
        max_depth=6,
        subsample=0.9,
        eval_metric="aucpr",
        n_jobs=1,
        random_state=SEED,
        callbacks=[EveryTen()],
    )
    model.fit(
        x_train,
        y_train,
        eval_set=[(x_train, y_train), (x_test, y_test)],
        verbose=False,
    )
    proba = model.predict_proba(x_test)[:, 1]
    pred = (proba > 0.5).astype(int)
    print(f"test AP     {average_precision_score(y_test, proba):.4f}")
    print(f"test recall {recall_score(y_test, pred):.4f}")
    print(f"test F1     {f1_score(y_test, pred):.4f}")


if __name__ == "__main__":
    main()
