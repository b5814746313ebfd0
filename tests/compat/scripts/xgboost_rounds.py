"""XGBoost trainings with a hook as callback, as for the old library: python xgboost_rounds.py OUT_DIR."""

import sys

import numpy as np
import xgboost
from smdebug import SaveConfig
from smdebug.xgboost import Hook


def main(out_dir):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 4))
    y = (x[:, 0] + x[:, 1] > 0).astype(int)
    dtrain, dtest = xgboost.DMatrix(x[:60], label=y[:60]), xgboost.DMatrix(x[60:], label=y[60:])
    params = {"objective": "binary:logistic", "eval_metric": "logloss", "max_depth": 2, "nthread": 1}
    hook = Hook(
        out_dir=out_dir,
        save_config=SaveConfig(save_interval=2),
        include_collections=["metrics", "feature_importance", "hyperparameters", "predictions", "labels"],
        hyperparameters=params,
        train_data=dtrain,
        validation_data=dtest,
    )
    evals = [(dtrain, "train"), (dtest, "validation")]
    model = xgboost.train(params, dtrain, 7, evals=evals, verbose_eval=False, callbacks=[hook])
    hook.close()
    print(model.predict(dtest).tolist())


if __name__ == "__main__":
    main(sys.argv[1])
