"""Trainings with wrappers around every function that trains, under every name it has.

usage: python wrapped.py none|alike|other [AGENT_COMES_LATE_WITH_THIS_CONFIGURATION]

alike: with functools.wraps. Prints the calls of the wrappers and digests of the models, and to stderr what is replaced.
"""

import collections
import functools
import hashlib
import os
import sys

import numpy as np
import xgboost
import xgboost.sklearn

WAY, LATE = sys.argv[1], sys.argv[2:]
calls = collections.Counter()
rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4)).astype(np.float32)
y = (X[:, 0] > 0).astype(int)
data = xgboost.DMatrix(X, y)
PARAMETERS = {"objective": "binary:logistic", "max_depth": 2, "subsample": 0.6, "nthread": 1}


def places():
    """Every name by which the library has one of the two functions."""
    functions = [xgboost.training.train, xgboost.training.cv]
    return sorted(
        (module, name)
        for module in [*sys.modules]
        if module.partition(".")[0] == "xgboost"
        for name, value in vars(sys.modules[module]).items()
        if any(value is function for function in functions)
    )


def wrap(module, name, mark):
    original = getattr(sys.modules[module], name)
    if WAY == "none":
        return original

    def wrapper(*args, **kwargs):
        calls[f"{mark} {module}.{name}"] += 1
        return original(*args, **kwargs)

    setattr(sys.modules[module], name, functools.wraps(original)(wrapper) if WAY == "alike" else wrapper)
    return original


def train_all():
    def digest(model):
        return hashlib.sha256(bytes(model.save_raw(raw_format="ubj"))).hexdigest()

    print(digest(xgboost.train(PARAMETERS, data, 2, evals=[(data, "d")], verbose_eval=False)))
    print(digest(xgboost.training.train(PARAMETERS, data, 2)))
    print(digest(xgboost.XGBClassifier(n_estimators=2, max_depth=2, random_state=1).fit(X, y).get_booster()))
    print(xgboost.cv(PARAMETERS, data, 2, nfold=2, as_pandas=False))


found = places()
print(found)
before = [wrap(*place, "first") for place in found]
if LATE:
    os.environ["SMDEBUG_CONFIG_FILE_PATH"] = LATE[0]
    from smd_agent import boot

    boot.start()
train_all()
again = [wrap(*place, "second") for place in found]
train_all()
# Taken off in the other order: the first ones are what stood under the second.
for originals in (before, again) if not LATE else ():
    for (module, name), original in zip(found, originals, strict=True):
        setattr(sys.modules[module], name, original)
    train_all()
print(sorted(calls.items()))
if "smd_agent" in sys.modules:
    from smd_agent.framework.replaced_functions import replaced

    listed = sorted((entry.owner.__name__, entry.name) for entry in replaced() if "xgboost" in entry.path)
    print("replaced", listed == found, file=sys.stderr)
