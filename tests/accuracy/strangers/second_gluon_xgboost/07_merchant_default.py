"""Default risk of merchant loans with XGBoost; merchant id is target-encoded."""
import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

SEED = 13


def make_loans(n=60000, n_merchants=20000):
    rng = np.random.default_rng(SEED)
    quality = rng.normal(0, 0.6, n_merchants)
    df = pd.DataFrame({
        "merchant": rng.integers(0, n_merchants, n),
        "amount": rng.lognormal(8, 0.7, n),
        "term": rng.choice([12, 24, 36, 48, 60], n),
        "rate": rng.normal(9, 2, n),
        "turnover": rng.lognormal(10, 0.9, n),
        "age": rng.gamma(3, 2, n),
    })
    z = (0.9 * (np.log(df.amount) - 8) - 0.8 * (np.log(df.turnover) - 10)
         + 0.25 * (df.rate - 9) + 0.02 * (df.term - 36) - 0.12 * (df.age - 6)
         + quality[df.merchant] - 0.8)
    df["default"] = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return df


def fit_encoding(frame, prior, smooth=5.0):
    g = frame.groupby("merchant")["default"].agg(["sum", "count"])
    return (g["sum"] + smooth * prior) / (g["count"] + smooth)


loans = make_loans()
train, test = train_test_split(loans, test_size=0.25, random_state=SEED, stratify=loans["default"])
train, test = train.copy(), test.copy()

prior = train["default"].mean()
encoding = fit_encoding(train, prior)
train["merchant_te"] = train["merchant"].map(encoding)
test["merchant_te"] = test["merchant"].map(encoding).fillna(prior)

features = ["merchant_te", "amount", "term", "rate", "turnover", "age"]
fit_part, val_part = train_test_split(train, test_size=0.2, random_state=SEED, stratify=train["default"])
dtrain = xgb.DMatrix(fit_part[features], label=fit_part["default"])
dval = xgb.DMatrix(val_part[features], label=val_part["default"])
dtest = xgb.DMatrix(test[features], label=test["default"])

params = {
    "objective": "binary:logistic",
    "eval_metric": "auc",
    "eta": 0.03,
    "max_depth": 4,
    "subsample": 0.8,
    "min_child_weight": 10,
    "seed": SEED,
}
booster = xgb.train(params, dtrain, num_boost_round=600,
                    evals=[(dtrain, "train"), (dval, "val")],
                    early_stopping_rounds=50, verbose_eval=50)

p = booster.predict(dtest, iteration_range=(0, booster.best_iteration + 1))
print("best iteration:", booster.best_iteration)
print("validation AUC: %.4f" % booster.best_score)
print("test AUC:       %.4f" % roc_auc_score(test["default"], p))
print("test log loss:  %.4f" % log_loss(test["default"], p))
print(pd.Series(booster.get_score(importance_type="gain")).sort_values(ascending=False).round(1))
