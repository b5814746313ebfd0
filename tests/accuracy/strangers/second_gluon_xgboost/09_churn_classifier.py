"""Customer churn model (scikit-learn API) with early stopping on a validation set."""
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier


def load_customers():
    X, y = make_classification(
        n_samples=40000, n_features=30, n_informative=12, n_redundant=6,
        n_clusters_per_class=3, weights=[0.7], class_sep=0.8, flip_y=0.04,
        random_state=2024)
    return X.astype(np.float32), y


def split(X, y):
    X_tmp, X_test, y_tmp, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    X_train, X_val, y_train, y_val = train_test_split(X_tmp, y_tmp, test_size=0.2, stratify=y_tmp, random_state=0)
    return X_train, X_val, X_test, y_train, y_val, y_test


def main():
    X, y = load_customers()
    X_train, X_val, X_test, y_train, y_val, y_test = split(X, y)
    print(f"{len(X_train)} train / {len(X_val)} val / {len(X_test)} test, churn rate {y.mean():.3f}")

    model = XGBClassifier(
        n_estimators=1200,
        learning_rate=0.12,
        max_depth=5,
        subsample=0.8,
        colsample_bytree=0.8,
        min_child_weight=5,
        eval_metric=roc_auc_score,
        early_stopping_rounds=60,
        random_state=0,
    )
    model.fit(X_train, y_train, eval_set=[(X_val, y_val)], verbose=50)

    proba = model.predict_proba(X_test)[:, 1]
    label = model.predict(X_test)
    print("best iteration :", model.best_iteration)
    print(f"test AUC       : {roc_auc_score(y_test, proba):.4f}")
    print(f"test accuracy  : {accuracy_score(y_test, label):.4f}")
    print(f"test log loss  : {log_loss(y_test, proba):.4f}")

    edges = np.quantile(proba, [0.5, 0.8, 0.9, 0.95])
    for e in edges:
        chosen = proba >= e
        print(f"  score >= {e:.3f}: {chosen.sum():5d} customers, churners {y_test[chosen].mean():.3f}")


if __name__ == "__main__":
    main()
