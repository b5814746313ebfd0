"""A grid search over a pipeline with a boosted classifier, the best one pickled with joblib."""

import joblib
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import classification_report
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from xgboost import XGBClassifier

RANDOM_STATE = 0


def build():
    classifier = XGBClassifier(n_estimators=5, n_jobs=1, random_state=RANDOM_STATE, subsample=0.9)
    return Pipeline([("scale", StandardScaler()), ("boost", classifier)])


if __name__ == "__main__":
    np.random.seed(RANDOM_STATE)
    X, y = make_classification(240, 8, n_informative=4, n_classes=3, random_state=RANDOM_STATE)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=RANDOM_STATE)
    search = GridSearchCV(
        build(),
        {"boost__max_depth": [2, 4], "boost__learning_rate": [0.1, 0.5]},
        cv=StratifiedKFold(2, shuffle=True, random_state=RANDOM_STATE),
        scoring="f1_macro",
        n_jobs=1,
    )
    search.fit(X_train, y_train)
    for setting, score in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
        print(f"{score:.6f}", setting)
    print("best", search.best_params_)
    print(classification_report(y_test, search.predict(X_test), zero_division=0))
    joblib.dump(search.best_estimator_, "best.joblib")
    print(np.random.rand())
