"""The number of rounds is chosen by cross-validation, then a model is trained with it, and explained."""

import csv

import numpy as np
import xgboost as xgb

SEED = 20
rng = np.random.default_rng(SEED)
features = rng.uniform(size=(250, 5))
target = 3 * features[:, 0] + np.sin(6 * features[:, 1]) + 0.1 * rng.normal(size=250)
data = xgb.DMatrix(features, target)
params = {"objective": "reg:squarederror", "max_depth": 2, "eta": 0.4, "nthread": 1, "seed": SEED}

scores = xgb.cv(params, data, num_boost_round=9, nfold=3, metrics=["rmse", "mae"], as_pandas=False, seed=SEED)
means = scores["test-rmse-mean"]
for number, (mean, std) in enumerate(zip(means, scores["test-rmse-std"])):
    print(f"{number:2d} {mean:.5f} ± {std:.5f}")
with open("scores.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(scores)
    writer.writerows(zip(*scores.values()))

best = int(np.argmin(means)) + 1
print("rounds:", best)
model = xgb.train(params, data, best, evals=[(data, "all")], verbose_eval=4)
shap = model.predict(data, pred_contribs=True)
print("mean |SHAP|:", np.abs(shap).mean(0).round(5).tolist())
model.save_model("regressor.json")
model.dump_model("regressor.txt", with_stats=True)
print(rng.random())
