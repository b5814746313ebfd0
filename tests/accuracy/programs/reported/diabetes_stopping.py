"""Trains XGBoost on the diabetes table until the error no longer falls."""

import numpy as np
import xgboost as xgb
from sklearn.datasets import load_diabetes

x, y = load_diabetes(return_X_y=True)
order = np.random.default_rng(2).permutation(len(y))
x, y = x[order], y[order]
dtrain, dval = xgb.DMatrix(x[:320], y[:320]), xgb.DMatrix(x[320:], y[320:])

history = {}
booster = xgb.train(
    {"objective": "reg:squarederror", "max_depth": 4, "eta": 0.1, "subsample": 0.8, "nthread": 1, "seed": 2},
    dtrain,
    num_boost_round=300,
    evals=[(dval, "val"), (dtrain, "train")],
    evals_result=history,
    early_stopping_rounds=15,
    verbose_eval=50,
)
print(f"rounds {booster.num_boosted_rounds()} best {booster.best_iteration}")
guess = booster.predict(dval, iteration_range=(0, booster.best_iteration + 1))
print(f"error on the patients held back {np.sqrt(np.mean((guess - y[320:]) ** 2)):.1f}")
