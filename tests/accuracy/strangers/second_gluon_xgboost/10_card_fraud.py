import numpy as np
import xgboost as xgb
from sklearn.metrics import (average_precision_score, confusion_matrix, f1_score,
                             precision_score, recall_score)
from sklearn.model_selection import train_test_split

SEED = 99
rng = np.random.RandomState(SEED)


def transactions(n):
    """Card payments: a few percent are fraudulent and sit in some odd corners."""
    fraud = rng.rand(n) < 0.05
    hour = np.where(fraud, rng.normal(3, 3, n) % 24, rng.normal(14, 4.5, n) % 24)
    amount = np.where(fraud, rng.lognormal(4.6, 1.0, n), rng.lognormal(3.6, 0.9, n))
    distance = np.where(fraud, rng.gamma(2.0, 60, n), rng.gamma(1.2, 30, n))
    n_last_day = np.where(fraud, rng.poisson(5, n), rng.poisson(3, n))
    new_device = (rng.rand(n) < np.where(fraud, 0.45, 0.12)).astype(float)
    noise = rng.normal(size=(n, 8))
    X = np.column_stack([hour, amount, distance, n_last_day, new_device, noise])
    return X, fraud.astype(int)


X, y = transactions(90000)
X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.3, stratify=y, random_state=SEED)
X_tr, X_va, y_tr, y_va = train_test_split(X_tr, y_tr, test_size=0.2, stratify=y_tr, random_state=SEED)

n_pos = int(y_tr.sum())
n_neg = int(len(y_tr) - n_pos)
print("train: %d legitimate, %d fraud" % (n_neg, n_pos))

clf = xgb.XGBClassifier(
    n_estimators=300,
    max_depth=3,
    learning_rate=0.05,
    subsample=0.8,
    colsample_bytree=0.8,
    scale_pos_weight=n_pos / n_neg,
    eval_metric="aucpr",
    random_state=SEED,
)
clf.fit(X_tr, y_tr, eval_set=[(X_tr, y_tr), (X_va, y_va)], verbose=50)

pred = clf.predict(X_te)
score = clf.predict_proba(X_te)[:, 1]
tn, fp, fn, tp = confusion_matrix(y_te, pred).ravel()
print("confusion: tn=%d fp=%d fn=%d tp=%d" % (tn, fp, fn, tp))
print("precision %.3f" % precision_score(y_te, pred, zero_division=0))
print("recall    %.3f" % recall_score(y_te, pred))
print("F1        %.3f" % f1_score(y_te, pred, zero_division=0))
print("PR-AUC    %.3f" % average_precision_score(y_te, score))
