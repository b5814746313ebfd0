"""Matrices, models, callbacks, objectives and containers of XGBoost that override all that they can, and count it.

What is copied, pickled and saved while a model trains is part of what is printed. Knows nothing of the agent.

usage: python hostile.py [NOTES.npz]
"""

import copy
import hashlib
import os
import pickle
import sys
import tempfile
from pathlib import Path

import numpy as np
import xgboost as xgb

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from counted import count, made, reading, resting, told

MATRIX = (
    *("__len__", "__bool__", "__iter__", "__eq__", "__ne__", "__hash__", "__repr__", "__str__", "__getattr__"),
    *("__class__", "__deepcopy__", "__reduce_ex__", "__contains__", "__getitem__", "save_binary"),
)
MATRIX_PASSED = (
    *("num_row", "num_col", "num_nonmissing", "get_label", "get_weight", "get_base_margin", "get_float_info", "slice"),
    *("get_uint_info", "get_group", "__getattribute__", "__setattr__"),
)
MODEL = ("__len__", "__bool__", "__eq__", "__hash__", "__repr__", "__str__", "__getattr__", "__class__", "__contains__")
MODEL_PASSED = (
    *(
        "predict",
        "num_boosted_rounds",
        "num_features",
        "save_config",
        "get_score",
        "get_dump",
        "save_raw",
        "dump_model",
    ),
    *("__getitem__", "attr", "attributes", "get_fscore", "__getattribute__", "__setattr__", "update", "eval_set"),
    *("__copy__", "__deepcopy__", "__getstate__", "copy", "save_model"),
)
CALLBACK = ("__len__", "__bool__", "__eq__", "__repr__", "__str__", "__getattr__", "__class__", "__iter__", "__call__")
CONTAINER = ("__len__", "__iter__", "__bool__", "__getitem__", "__eq__", "__contains__", "__repr__", "__class__")
ROUNDS = 3
rng = np.random.default_rng(0)
X = rng.normal(size=(240, 5)).astype(np.float32)
y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
BINARY = {
    "objective": "binary:logistic",
    "max_depth": 2,
    "subsample": 0.7,
    "nthread": 1,
    "seed": 1,
    "tree_method": "hist",
}
SCENES, notes = [], {}
FILE = os.path.join(tempfile.mkdtemp(), "model.ubj")


def passed(base, names):
    """Return what counts and does what the base class does, of the names that it has."""
    kept = [name for name in names if hasattr(base, name)]
    return {
        name: reading(name, base) if isinstance(getattr(base, name), property) else made(base, [name], [name])[name]
        for name in kept
    }


def matrices(kind=xgb.DMatrix):
    return kind(X[:180], y[:180]), kind(X[180:], y[180:])


def scene(function):
    def play():
        model = function()
        digest = hashlib.sha256(bytes(xgb.Booster.save_raw(model, raw_format="ubj"))).hexdigest()
        print(function.__name__, digest, told(), flush=True)
        with resting():
            notes[function.__name__] = xgb.Booster.predict(model, xgb.DMatrix(X[180:]))

    SCENES.append(play)
    return function


def train(dtrain, dtest, parameters=BINARY, evals=None, **more):
    evals = [(dtrain, "train"), (dtest, "test")] if evals is None else evals
    return xgb.train(parameters, dtrain, ROUNDS, evals=evals, verbose_eval=False, **more)


def hostile_matrix(base=xgb.DMatrix):
    body = {**made(base, MATRIX), **passed(base, (*MATRIX_PASSED, "feature_names", "feature_types"))}

    def freed(self):
        # When that is, is nobody's.
        with resting():
            base.__del__(self)

    return type("Matrix", (base,), {**body, "__del__": freed})


def looking(model):
    """Return a digest of all that a model is copied, pickled and saved as."""
    model.save_model(FILE)
    twins = [copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    raw = [bytes(one.save_raw(raw_format="ubj")) for one in [model, *twins]]
    raw += [
        Path(FILE).read_bytes(),
        pickle.dumps(model),
        str(sorted(vars(model))).encode(),
        model.save_config().encode(),
    ]
    return hashlib.sha256(b"".join(raw)).hexdigest()


class Looking(xgb.callback.TrainingCallback):
    """Copies, pickles and saves the model before and after each round."""

    def before_iteration(self, model, epoch, evals_log):
        print("before", epoch, looking(model), pickle.dumps(evals_log) == pickle.dumps(copy.deepcopy(evals_log)))
        return False

    def after_iteration(self, model, epoch, evals_log):
        print("after", epoch, looking(model), str(evals_log))
        return False


@scene
def matrix():
    return train(*matrices(hostile_matrix()))


@scene
def quantile_matrix():
    kind = hostile_matrix(xgb.QuantileDMatrix)
    with resting():
        dtrain = kind(X[:180], y[:180])
        dtest = kind(X[180:], y[180:], ref=dtrain)
    return train(dtrain, dtest)


@scene
def matrix_beside_a_plain_one():
    dtrain, _ = matrices(hostile_matrix())
    with resting():
        dtest = xgb.DMatrix(X[180:], y[180:])
    return train(dtrain, dtest)


@scene
def iterator():
    class Batches(xgb.DataIter):
        __len__ = __bool__ = __eq__ = __iter__ = made(object, ["an iterator's"])["an iterator's"]

        def __init__(self):
            super().__init__()
            self.place = 0

        def next(self, input_data):
            count("next")
            if self.place == 3:
                return 0
            rows = slice(60 * self.place, 60 * self.place + 60)
            input_data(data=X[rows], label=y[rows])
            self.place += 1
            return 1

        def reset(self):
            count("reset")
            self.place = 0

    dtrain = xgb.QuantileDMatrix(Batches())
    return train(dtrain, xgb.QuantileDMatrix(X[180:], y[180:], ref=dtrain))


# Under a name by which it is pickled.
Model = type("Model", (xgb.Booster,), {**made(xgb.Booster, MODEL), **passed(xgb.Booster, MODEL_PASSED)})


@scene
def model_of_a_callback():
    dtrain, dtest = matrices()

    class Other(xgb.callback.TrainingCallback):
        def before_training(self, model):
            return Model(BINARY, [dtrain, dtest])

    return train(dtrain, dtest, callbacks=[Other(), Looking()])


@scene
def callbacks():
    base = xgb.callback.TrainingCallback
    passing = (
        "__hash__",
        "before_training",
        "after_training",
        "before_iteration",
        "after_iteration",
        "__getattribute__",
    )
    kind = type("Own", (base,), {**made(base, CALLBACK), **passed(base, passing)})
    stopping = xgb.callback.EarlyStopping
    stop = type("Stop", (stopping,), {**made(stopping, CALLBACK), **passed(stopping, passing)})
    dtrain, dtest = matrices()
    given = type("Given", (list,), {**made(list, CONTAINER[3:]), **passed(list, ("__len__", "__iter__"))})
    return train(dtrain, dtest, callbacks=given([kind(), stop(rounds=5)]))


@scene
def callbacks_that_are_seen_once():
    dtrain, dtest = matrices()
    return train(dtrain, dtest, callbacks=(one for one in [Looking()]))


@scene
def containers():
    dtrain, dtest = matrices()
    kind = type("Sets", (list,), {**made(list, CONTAINER[3:]), **passed(list, ("__len__", "__iter__"))})
    pair = type(
        "Pair", (tuple,), {**made(tuple, CONTAINER[4:]), **passed(tuple, ("__len__", "__iter__", "__getitem__"))}
    )
    names = ("items", "keys", "values", "get", "copy", "__iter__", "__len__", "__contains__", "__getitem__", "__or__")
    parameters = type("Parameters", (dict,), passed(dict, names))
    return train(dtrain, dtest, parameters(BINARY), evals=kind([pair((dtrain, "train")), pair((dtest, "test"))]))


@scene
def parameters_of_a_class():
    class Depth(int):
        __str__ = __repr__ = __format__ = passed(int, ["__repr__"])["__repr__"]

        def __index__(self):
            count("index")
            return 2

    class Word(str):
        def __str__(self):
            count("word")
            return "binary:logistic"

    return train(*matrices(), {**BINARY, "max_depth": Depth(2), "objective": Word("binary:logistic")})


@scene
def objective_and_metric():
    class Squared:
        __len__ = __bool__ = __eq__ = __hash__ = made(object, ["an objective's"])["an objective's"]

        def __call__(self, predictions, data):
            count("objective")
            print("objective", hashlib.sha256(predictions.tobytes()).hexdigest(), sorted(vars(data)))
            return predictions - data.get_label(), np.ones_like(predictions)

    class Wrong:
        __len__ = __bool__ = __eq__ = __hash__ = made(object, ["a metric's"])["a metric's"]

        def __call__(self, predictions, data):
            count("metric")
            return "wrong", float(np.mean((predictions > 0.5) != data.get_label()))

    dtrain, dtest = matrices(hostile_matrix())
    return train(dtrain, dtest, {"max_depth": 2, "nthread": 1}, obj=Squared(), custom_metric=Wrong())


@scene
def copied_in_callbacks():
    return train(*matrices(), callbacks=[Looking()])


def estimator(base, names):
    return type(
        "Estimator", (base,), {**passed(base, names), **made(base, ("__len__", "__bool__", "__eq__", "__iter__"))}
    )


@scene
def estimator_of_a_class():
    names = ("fit", "get_params", "get_xgb_params", "get_booster", "__getattribute__", "get_num_boosting_rounds")
    with resting():
        kind = estimator(xgb.XGBClassifier, (*names, "_configure_fit", "__getstate__", "save_model"))
        model = kind(n_estimators=ROUNDS, max_depth=2, n_jobs=1, callbacks=[Looking()], random_state=1)
    model.fit(X[:180], y[:180], eval_set=[(X[:180], y[:180]), (X[180:], y[180:])], verbose=False)
    with resting():
        return model.get_booster()


if __name__ == "__main__":
    for play in SCENES:
        play()
    if len(sys.argv) > 1:
        np.savez(sys.argv[1], **notes)
