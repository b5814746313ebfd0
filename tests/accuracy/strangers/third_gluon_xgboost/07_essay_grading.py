"""Ordinal grading (0-4) as regression, judged by quadratic weighted kappa."""
import numpy as np
import xgboost as xgb
from sklearn.metrics import cohen_kappa_score, mean_absolute_error
from sklearn.model_selection import train_test_split

SEED = 13
rng = np.random.default_rng(SEED)


def make_essays(n=3000):
    words = rng.gamma(6, 50, n)
    spelling = rng.poisson(4, n)
    vocab = rng.normal(0, 1, n)
    coherence = rng.normal(0, 1, n)
    topic = rng.integers(0, 8, n)
    sentence_len = rng.normal(17, 4, n)
    other = rng.normal(size=(n, 6))
    quality = (0.8 * np.tanh((words - 300) / 120) - 0.12 * spelling + 0.7 * vocab
               + 0.5 * coherence * (words > 220) - 0.02 * (sentence_len - 17) ** 2
               + 0.2 * (topic % 3) + 0.45 * rng.normal(size=n))
    grade = np.digitize(quality, np.quantile(quality, [0.08, 0.3, 0.68, 0.92]))
    X = np.column_stack([words, spelling, vocab, coherence, topic, sentence_len, other])
    return X.astype(np.float32), grade


def to_grade(pred):
    return np.clip(np.rint(pred), 0, 4).astype(int)


def qwk(predt, dmat):
    return "qwk", cohen_kappa_score(dmat.get_label().astype(int), to_grade(predt),
                                    weights="quadratic", labels=[0, 1, 2, 3, 4])


X, y = make_essays()
X_tmp, X_test, y_tmp, y_test = train_test_split(X, y, test_size=0.25, random_state=SEED, stratify=y)
X_train, X_val, y_train, y_val = train_test_split(X_tmp, y_tmp, test_size=0.25,
                                                  random_state=SEED, stratify=y_tmp)

dtrain = xgb.DMatrix(X_train, label=y_train)
dval = xgb.DMatrix(X_val, label=y_val)
dtest = xgb.DMatrix(X_test, label=y_test)

params = {
    "objective": "reg:squarederror",
    "eta": 0.15,
    "max_depth": 4,
    "subsample": 0.8,
    "colsample_bytree": 0.8,
    "disable_default_eval_metric": 1,
    "nthread": 1,
    "seed": SEED,
}

booster = xgb.train(
    params,
    dtrain,
    num_boost_round=500,
    evals=[(dtrain, "train"), (dval, "val")],
    custom_metric=qwk,
    early_stopping_rounds=40,
    verbose_eval=20,
)

best = booster.best_iteration
pred = booster.predict(dtest, iteration_range=(0, best + 1))
print("best iteration:", best, " val qwk:", round(booster.best_score, 4))
print("test qwk: %.4f" % cohen_kappa_score(y_test, to_grade(pred), weights="quadratic"))
print("test MAE: %.4f" % mean_absolute_error(y_test, pred))
