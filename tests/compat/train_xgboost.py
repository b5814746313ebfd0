"""The same trainings with the hook of either library; both XGBoost hooks are made alike.

usage: python train_xgboost.py KIND OUT_DIR     by an interpreter that has the original library
"""

import sys

import numpy as np
import xgboost

ROUNDS = 5
# What a name may end in without its feature getting lost, and characters that stand in the names of tensors.
FEATURES = ["rib", "mei", "alpha", "class", "per/", "a b-c", "x_1", "basis"]
COLLECTIONS = [
    "metrics",
    "losses",
    "hyperparameters",
    "predictions",
    "labels",
    "feature_importance",
    "average_shap",
    "full_shap",
    "trees",
]
KINDS = {
    "binary": {"objective": "binary:logistic", "eval_metric": ["logloss", "auc", "error@0.7"]},
    "multi-class": {"objective": "multi:softprob", "num_class": 3, "eval_metric": ["mlogloss", "merror"]},
    "class numbers": {"objective": "multi:softmax", "num_class": 3, "eval_metric": ["merror"]},
    "ranking": {"objective": "rank:pairwise", "eval_metric": ["ndcg@5", "map@3-"]},
    "dart": {"booster": "dart", "rate_drop": 0.5, "one_drop": 1, "eval_metric": ["rmse"]},
    "forest": {"num_parallel_tree": 2, "subsample": 0.7, "eval_metric": ["rmse", "mae"]},
}


def matrices(kind):
    """Return the training and the validation data of a kind."""
    rng = np.random.default_rng(3)
    made = []
    for rows in (120, 40):
        values = rng.normal(size=(rows, len(FEATURES))).astype(np.float32)
        sums = values[:, 0] + values[:, 2] * values[:, 3] + values[:, 7]
        values[rng.random(values.shape) < 0.1] = np.nan
        limits = [0] if kind in ("binary", "ranking") else [-0.7, 0.7]
        label = sums if kind in ("dart", "forest") else np.digitize(sums, limits)
        data = xgboost.DMatrix(values, label=label, feature_names=None if kind == "dart" else FEATURES)
        if kind == "ranking":
            data.set_group([10] * (rows // 10))
        made.append(data)
    return made


def train(smd, kind, out_dir):
    """Train with a hook of the library ``smd`` that saves everything there is; return the model."""
    train_data, validation_data = matrices(kind)
    params = {"max_depth": 3, "eta": 0.5, "nthread": 1, "seed": 1, "verbosity": 0, **KINDS[kind]}
    hook = smd.Hook(
        out_dir=str(out_dir),
        save_config=smd.SaveConfig(save_interval=2),
        include_collections=COLLECTIONS,
        hyperparameters={**params, "rate": 0.25, "on": True, "depths": [3, 4]},
        train_data=train_data,
        validation_data=validation_data,
    )
    evals = [(train_data, "train"), (validation_data, "validation_0")]
    model = xgboost.train(params, train_data, ROUNDS, evals=evals, verbose_eval=False, callbacks=[hook])
    hook.close()
    return model


if __name__ == "__main__":
    import smdebug.xgboost

    train(smdebug.xgboost, *sys.argv[1:])
