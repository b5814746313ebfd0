"""
Compressive strength style regression (Friedman data): choose depth and number of
boosting rounds by cross-validation, then fit on the whole training set.
"""
import numpy as np
import xgboost as xgb
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import train_test_split

SEED = 31

X, y = make_friedman1(n_samples=1500, n_features=12, noise=1.0, random_state=SEED)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=SEED)
dtrain = xgb.DMatrix(X_train, label=y_train)
dtest = xgb.DMatrix(X_test, label=y_test)

base = {
    "objective": "reg:squarederror",
    "eval_metric": "rmse",
    "learning_rate": 0.06,
    "subsample": 0.8,
    "colsample_bytree": 0.8,
    "nthread": 1,
    "seed": SEED,
}

results = []
for depth in (2, 3, 4, 6):
    params = dict(base, max_depth=depth)
    cv = xgb.cv(
        params,
        dtrain,
        num_boost_round=1500,
        nfold=4,
        early_stopping_rounds=25,
        seed=SEED,
    )
    rounds = len(cv)
    score = cv["test-rmse-mean"].iloc[-1]
    results.append((score, depth, rounds))
    print(f"depth {depth}: cv rmse {score:.4f} +- {cv['test-rmse-std'].iloc[-1]:.4f} "
          f"after {rounds} rounds")

cv_rmse, depth, rounds = min(results)
print(f"chosen: depth {depth}, {rounds} rounds")

final_params = dict(base, max_depth=depth, n_estimators=rounds)
watch = {}
model = xgb.train(final_params, dtrain, evals=[(dtrain, "train")],
                  evals_result=watch, verbose_eval=False)

pred = model.predict(dtest)
print(f"train rmse {watch['train']['rmse'][-1]:.4f}")
print(f"test rmse  {np.sqrt(mean_squared_error(y_test, pred)):.4f}  (cv estimate {cv_rmse:.4f})")
print(f"test R2    {r2_score(y_test, pred):.4f}")
