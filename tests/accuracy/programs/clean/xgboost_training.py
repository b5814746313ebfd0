"""XGBoost trainings of small data, by name."""

import sys

import numpy as np
import xgboost as xgb
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.model_selection import cross_val_score, train_test_split


def split(loaded):
    x, y = loaded
    return train_test_split(x, y, test_size=0.25, random_state=0)


def binary():
    a, b, y, z = split(load_breast_cancer(return_X_y=True))
    train, test = xgb.DMatrix(a, y), xgb.DMatrix(b, z)
    params = {"objective": "binary:logistic", "max_depth": 4, "eta": 0.2, "subsample": 0.8, "colsample_bytree": 0.8}
    xgb.train(params, train, 80, evals=[(train, "train"), (test, "test")], early_stopping_rounds=8, verbose_eval=20)


def multiclass():
    a, b, y, z = split(load_digits(return_X_y=True))
    model = xgb.XGBClassifier(n_estimators=30, max_depth=4, learning_rate=0.3, n_jobs=1)
    model.fit(a, y, eval_set=[(b, z)], verbose=False)
    print(model.score(b, z))


def regression():
    a, b, y, z = split(load_diabetes(return_X_y=True))
    model = xgb.XGBRegressor(n_estimators=40, max_depth=2, learning_rate=0.1, reg_lambda=5, n_jobs=1)
    model.fit(a, y, eval_set=[(a, y), (b, z)], verbose=False)
    print(model.score(b, z))


def folds():
    x, y = load_wine(return_X_y=True)
    print(cross_val_score(xgb.XGBClassifier(n_estimators=15, max_depth=3, n_jobs=1), x, y, cv=3))


def dart():
    a, b, y, z = split(load_iris(return_X_y=True))
    train, test = xgb.DMatrix(a, y), xgb.DMatrix(b, z)
    params = {"booster": "dart", "objective": "multi:softprob", "num_class": 3, "rate_drop": 0.1, "max_depth": 3}
    xgb.train(params, train, 25, evals=[(test, "valid")], verbose_eval=False)


def ranking():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1200, 6))
    relevance = np.digitize(x[:, 0] + 0.5 * x[:, 1] + 0.3 * rng.standard_normal(1200), [-0.5, 0.5, 1.2])
    data = xgb.DMatrix(x[:900], relevance[:900], group=[30] * 30)
    test = xgb.DMatrix(x[900:], relevance[900:], group=[30] * 10)
    params = {"objective": "rank:ndcg", "eta": 0.2, "max_depth": 3}
    xgb.train(params, data, 30, evals=[(data, "train"), (test, "test")], verbose_eval=False)


def forest():
    a, b, y, z = split(load_breast_cancer(return_X_y=True))
    model = xgb.XGBRFClassifier(n_estimators=40, max_depth=5, n_jobs=1).fit(a, y)
    print(model.score(b, z))


def linear():
    a, b, y, z = split(load_diabetes(return_X_y=True))
    train, test = xgb.DMatrix(a, y), xgb.DMatrix(b, z)
    params = {"booster": "gblinear", "eta": 0.3, "objective": "reg:squarederror"}
    xgb.train(params, train, 40, evals=[(train, "train"), (test, "test")], verbose_eval=False)


def rare():
    """One in fifteen is of the rare class, which has its weight."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1500, 8))
    y = (x[:, 0] + x[:, 1] + 0.3 * rng.standard_normal(1500) > 2.1).astype(int)
    weight = (y == 0).sum() / (y == 1).sum()
    model = xgb.XGBClassifier(n_estimators=40, max_depth=3, scale_pos_weight=weight, n_jobs=1)
    model.fit(x[:1000], y[:1000], eval_set=[(x[:1000], y[:1000]), (x[1000:], y[1000:])], verbose=False)


def stopping_estimator():
    """Two sets of an estimator, of which the last one stops it; its loss is on the way up by then."""
    a, b, y, z = split(load_diabetes(return_X_y=True))
    model = xgb.XGBRegressor(n_estimators=500, learning_rate=0.05, max_depth=4, early_stopping_rounds=20, n_jobs=1)
    model.fit(a, y, eval_set=[(a, y), (b, z)], verbose=False)


def stopping_callback():
    """The training data is the last set, and a callback names the other one."""
    a, b, y, z = split(load_digits(return_X_y=True))
    train, valid = xgb.DMatrix(a, y), xgb.DMatrix(b, z)
    stop = xgb.callback.EarlyStopping(rounds=10, data_name="valid", save_best=True)
    rate = xgb.callback.LearningRateScheduler(lambda i: 0.3 * 0.98**i)
    params = {"objective": "multi:softprob", "num_class": 10, "max_depth": 3}
    sets = [(valid, "valid"), (train, "train")]
    xgb.train(params, train, 60, evals=sets, callbacks=[stop, rate], verbose_eval=False)


def stopped_folds():
    """Folds that stop early, and a model of as many rounds."""
    data = xgb.DMatrix(*load_breast_cancer(return_X_y=True))
    params = {"objective": "binary:logistic", "max_depth": 4, "eta": 0.2}
    found = xgb.cv(params, data, 200, nfold=5, metrics=["auc", "logloss"], early_stopping_rounds=10)
    xgb.train(params, data, len(found))


def survival():
    """Accelerated failure times, of which three in ten are cut off."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((800, 5))
    times = np.exp(1 + x[:, 0] + 0.5 * rng.standard_normal(800))
    bounds = {"label_lower_bound": times, "label_upper_bound": np.where(rng.random(800) < 0.3, np.inf, times)}
    train, test = xgb.DMatrix(x[:600]), xgb.DMatrix(x[600:])
    for name, values in bounds.items():
        train.set_float_info(name, values[:600])
        test.set_float_info(name, values[600:])
    params = {"objective": "survival:aft", "eval_metric": "aft-nloglik", "max_depth": 2, "eta": 0.1}
    sets = [(train, "train"), (test, "test")]
    xgb.train(params, train, 60, evals=sets, early_stopping_rounds=10, verbose_eval=False)


def outputs():
    """A regression of three targets."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((600, 8))
    y = x @ rng.standard_normal((8, 3)) + 0.5 * rng.standard_normal((600, 3))
    model = xgb.XGBRegressor(n_estimators=50, max_depth=3, learning_rate=0.2, n_jobs=1)
    model.fit(x[:450], y[:450], eval_set=[(x[:450], y[:450]), (x[450:], y[450:])], verbose=False)


def oversampled():
    """Rows of the rare class are drawn again until there are as many of both."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((1500, 8))
    y = (x[:, 0] + x[:, 1] + 0.5 * rng.standard_normal(1500) > 2).astype(int)
    drawn = rng.choice(np.flatnonzero(y[:1000] == 1), 800)
    rows = np.r_[np.arange(1000), drawn]
    train, test = xgb.DMatrix(x[rows], y[rows]), xgb.DMatrix(x[1000:], y[1000:])
    params = {"objective": "binary:logistic", "max_depth": 3, "eta": 0.2}
    xgb.train(params, train, 40, evals=[(train, "train"), (test, "test")], verbose_eval=False)


def common_positives():
    """The label 1 is the common one, so its weight is below 1."""
    a, b, y, z = split(load_breast_cancer(return_X_y=True))
    weight = (y == 0).sum() / (y == 1).sum()
    model = xgb.XGBClassifier(n_estimators=30, max_depth=3, scale_pos_weight=weight, n_jobs=1)
    model.fit(a, y, eval_set=[(b, z)], verbose=False)


globals()[sys.argv[1]]()
