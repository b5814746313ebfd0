"""Trainings of XGBoost that have, together, all that facts are saved of."""

import numpy as np
import xgboost

rng = np.random.default_rng(0)
train, test = (xgboost.DMatrix(rng.random((60, 4)), label=np.arange(60) % 2) for _ in range(2))
settings = {"objective": "binary:logistic", "nthread": 1, "learningrate": 0.1}
xgboost.train(settings, train, 4, evals=[(train, "train"), (test, "test")], early_stopping_rounds=2, verbose_eval=False)

counts = xgboost.DMatrix(rng.random((60, 4)), label=np.arange(60) % 5, base_margin=rng.random(60))
xgboost.train({"objective": "count:poisson", "nthread": 1}, counts, 2)


def squares(predictions, data):
    return predictions - data.get_label(), np.ones(len(predictions))


weighted = xgboost.DMatrix(rng.random((60, 4)), label=np.arange(60.0), weight=rng.random(60))
xgboost.train({"nthread": 1}, weighted, 2, obj=squares)
