# Predict crop yield of field trials from soil and weather measurements.
import numpy as np
import xgboost as xgb
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import train_test_split

rng = np.random.default_rng(42)

n = 8000
d = 40
X = rng.normal(size=(n, d))
signal = (
    1.2 * X[:, 0]
    + 0.8 * np.maximum(X[:, 1], 0)
    - 0.7 * X[:, 2] * (X[:, 3] > 0)
    + 0.6 * np.sin(2 * X[:, 4])
    + 0.4 * X[:, 5]
)
y = 5.0 + signal + rng.normal(0, 2.0, n)

X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=1)
X_train, X_val, y_train, y_val = train_test_split(X_train, y_train, test_size=0.2, random_state=1)

names = ["soil_%d" % i for i in range(10)] + ["weather_%d" % i for i in range(30)]
dtrain = xgb.DMatrix(X_train, label=y_train, feature_names=names)
dval = xgb.DMatrix(X_val, label=y_val, feature_names=names)
dtest = xgb.DMatrix(X_test, label=y_test, feature_names=names)

params = dict(
    objective="reg:squarederror",
    eval_metric="rmse",
    eta=0.02,
    max_depth=10,
    min_child_weight=1,
    seed=0,
)

history = {}
bst = xgb.train(
    params,
    dtrain,
    num_boost_round=500,
    evals=[(dtrain, "train"), (dval, "val")],
    evals_result=history,
    verbose_eval=50,
)

pred = bst.predict(dtest)
print("trees used:      ", bst.num_boosted_rounds())
print("final train RMSE:", round(history["train"]["rmse"][-1], 4))
print("final val RMSE:  ", round(history["val"]["rmse"][-1], 4))
print("test RMSE:       ", round(float(np.sqrt(mean_squared_error(y_test, pred))), 4))
print("test R2:         ", round(r2_score(y_test, pred), 4))

gain = bst.get_score(importance_type="gain")
for name in sorted(gain, key=gain.get, reverse=True)[:6]:
    print("  %-12s %.1f" % (name, gain[name]))
