"""Medical screening: a missed case costs more than a false alarm (own objective)."""
import numpy as np
import xgboost as xgb
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

MISS_COST = 3.0
ROUNDS = 400


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def cost_sensitive(preds, dmat):
    y = dmat.get_label()
    w = np.where(y == 1, MISS_COST, 1.0)
    p = preds
    grad = w * (p - y)
    hess = w * np.maximum(p * (1 - p), 1e-6)
    return grad, hess


def mean_cost(preds, dmat):
    y = dmat.get_label()
    alarm = sigmoid(preds) > 0.5
    cost = MISS_COST * np.mean((y == 1) & ~alarm) + np.mean((y == 0) & alarm)
    return "cost", float(cost)


X, y = make_classification(n_samples=40000, n_features=24, n_informative=10, n_redundant=4,
                           n_clusters_per_class=2, weights=[0.75], class_sep=1.0,
                           flip_y=0.03, random_state=8)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=8)
dtrain = xgb.DMatrix(X_train, label=y_train)
dtest = xgb.DMatrix(X_test, label=y_test)

params = {
    "eta": 0.1,
    "max_depth": 3,
    "min_child_weight": 3,
    "subsample": 0.8,
    "disable_default_eval_metric": 1,
    "seed": 8,
}
log = {}
model = xgb.train(params, dtrain, num_boost_round=ROUNDS, obj=cost_sensitive,
                  custom_metric=mean_cost, evals=[(dtrain, "train"), (dtest, "test")],
                  evals_result=log, verbose_eval=20)

prob = sigmoid(model.predict(dtest, output_margin=True))
alarm = prob > 0.5
sens = np.mean(alarm[y_test == 1])
spec = np.mean(~alarm[y_test == 0])
weight = np.where(y_test == 1, MISS_COST, 1.0)
q = np.clip(prob, 1e-7, 1 - 1e-7)
wll = -np.average(y_test * np.log(q) + (1 - y_test) * np.log(1 - q), weights=weight)
print("final cost per patient  train %.4f  test %.4f" % (log["train"]["cost"][-1], log["test"]["cost"][-1]))
print("sensitivity %.3f  specificity %.3f" % (sens, spec))
print("weighted log loss %.4f" % wll)
