"""Train a fault-type classifier on sensor logs that arrive as daily files (out of core)."""
import os
import tempfile

import numpy as np
import xgboost as xgb
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, log_loss

N_DAYS = 10
ROWS = 300


def write_days(folder):
    X, y = make_classification(n_samples=N_DAYS * ROWS + 2000, n_features=20, n_informative=10,
                               n_classes=5, n_clusters_per_class=2, class_sep=1.1,
                               random_state=8)
    paths = []
    for day in range(N_DAYS):
        part = slice(day * ROWS, (day + 1) * ROWS)
        path = os.path.join(folder, "day_%02d.npz" % day)
        np.savez(path, X=X[part].astype("float32"), y=y[part])
        paths.append(path)
    return paths, X[N_DAYS * ROWS:].astype("float32"), y[N_DAYS * ROWS:]


def read_day(path):
    with np.load(path) as f:
        return f["X"], f["y"]


with tempfile.TemporaryDirectory() as folder:
    files, X_test, y_test = write_days(folder)

    clf = xgb.XGBClassifier(
        objective="multi:softprob",
        n_estimators=20,
        learning_rate=0.15,
        max_depth=5,
        subsample=0.9,
        reg_lambda=2.0,
        random_state=8,
        n_jobs=1,
    )

    booster = None
    for path in files:
        X, y = read_day(path)
        clf.fit(X, y)
        booster = clf.get_booster()
        proba = clf.predict_proba(X_test)
        print("%s  train acc %.3f  test acc %.4f  test logloss %.4f" % (
            os.path.basename(path), clf.score(X, y),
            accuracy_score(y_test, proba.argmax(1)), log_loss(y_test, proba)))

print("trees in the final model:", len(booster.get_dump()))
print("final test accuracy: %.4f" % accuracy_score(y_test, clf.predict(X_test)))
