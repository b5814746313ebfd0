import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, balanced_accuracy_score, confusion_matrix, f1_score, recall_score
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier


def load():
    X, y = make_classification(
        n_samples=18000, n_features=16, n_informative=6, n_redundant=3,
        n_clusters_per_class=2, weights=[0.968], class_sep=1.0, flip_y=0.005, random_state=77)
    X_train, X_rest, y_train, y_rest = train_test_split(X, y, test_size=0.4, stratify=y, random_state=77)
    X_val, X_test, y_val, y_test = train_test_split(X_rest, y_rest, test_size=0.5, stratify=y_rest, random_state=77)
    return (X_train, y_train), (X_val, y_val), (X_test, y_test)


def report(name, clf, X, y):
    proba = clf.predict_proba(X)[:, 1]
    pred = (proba >= 0.5).astype(int)
    print(f'--- {name} ---')
    print(confusion_matrix(y, pred))
    print('recall   %.4f' % recall_score(y, pred))
    print('f1       %.4f' % f1_score(y, pred))
    print('bal. acc %.4f' % balanced_accuracy_score(y, pred))
    print('avg prec %.4f' % average_precision_score(y, proba))


(X_train, y_train), (X_val, y_val), (X_test, y_test) = load()
n_pos = int(np.sum(y_train == 1))
n_neg = int(np.sum(y_train == 0))
print('train: %d negatives, %d positives' % (n_neg, n_pos))

clf = XGBClassifier(
    n_estimators=300,
    learning_rate=0.05,
    max_depth=4,
    min_child_weight=1,
    subsample=0.8,
    colsample_bytree=0.8,
    scale_pos_weight=n_pos / n_neg,
    eval_metric='aucpr',
    early_stopping_rounds=60,
    n_jobs=1,
    random_state=77,
)
clf.fit(X_train, y_train, eval_set=[(X_val, y_val)], verbose=50)
print('best iteration:', clf.best_iteration)
report('validation', clf, X_val, y_val)
report('test', clf, X_test, y_test)
