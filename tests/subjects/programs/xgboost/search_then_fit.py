"""XGBClassifier in a grid search without a pipeline; the best settings are fitted again, with a held-out set."""

import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from xgboost import XGBClassifier

warnings.simplefilter("ignore", RuntimeWarning)  # old scikit-learn casts memory that nothing has been written to
np.random.seed(4)
X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=4)

common = {"n_estimators": 6, "n_jobs": 1, "random_state": 4, "tree_method": "hist"}
search = GridSearchCV(XGBClassifier(**common), {"max_depth": [2, 3], "subsample": [0.7, 1.0]}, cv=2, scoring="roc_auc")
search.fit(X_train, y_train)
for params, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
    print(f"{score:.5f} {params}")

final = XGBClassifier(**common, **search.best_params_, eval_metric=["logloss", "auc"])
final.fit(X_train, y_train, eval_set=[(X_train, y_train), (X_test, y_test)], verbose=False)
history = final.evals_result()["validation_1"]
for logloss, auc in zip(history["logloss"], history["auc"]):
    print(f"logloss {logloss:.6f} auc {auc:.6f}")
print(f"accuracy {final.score(X_test, y_test):.4f}", np.random.rand())
final.save_model("final.json")
