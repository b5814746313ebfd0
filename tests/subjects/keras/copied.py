"""Trainings whose callback, ``train_step`` and layers copy, pickle and save the model, and look at what is in it.

usage: python copied.py     prints what every copy gave or raised, and a digest of the trained weights
"""

import contextlib
import copy
import hashlib
import pickle
import re

import keras
import numpy as np

KERAS_3 = keras.__version__ >= "3"
DONE = set()


def digest(model):
    return hashlib.sha256(b"".join(weight.tobytes() for weight in model.get_weights())).hexdigest()[:16]


def kinds(owner):
    return {name: f"{type(value).__module__}.{type(value).__qualname__}" for name, value in vars(owner).items()}


def functions(owner):
    return {name: value for name, value in vars(owner).items() if name in FUNCTIONS}


def function_kinds(owner):
    return {name: kind for name, kind in kinds(owner).items() if name in FUNCTIONS}


FUNCTIONS = ("train_function", "test_function", "predict_function", "train_tf_function")


def copied_functions(copied):
    """What stands in a copy, and whether that is what the model itself has."""
    return lambda model: [
        (name, type(value).__name__, value is vars(model)[name]) for name, value in copied(functions(model)).items()
    ]


def seen(model):
    return digest(model), type(model).__name__, function_kinds(model)


def saved(name):
    def save(model):
        model.save(name)
        return seen(keras.models.load_model(name))

    return save


WAYS = {
    "deepcopy": lambda model: seen(copy.deepcopy(model)),
    "copy": lambda model: seen(copy.copy(model)),
    "pickle": lambda model: seen(pickle.loads(pickle.dumps(model))),
    "clone": lambda model: function_kinds(keras.models.clone_model(model)),
    "save": saved("model.keras"),
    "config": lambda model: model.get_config(),
    "kinds": kinds,
    "kinds of the optimizer": lambda model: kinds(model.optimizer),
    "functions deepcopied": copied_functions(copy.deepcopy),
    "functions copied": copied_functions(copy.copy),
    "functions pickled": copied_functions(lambda found: pickle.loads(pickle.dumps(found))),
    "optimizer deepcopied": lambda model: kinds(copy.deepcopy(model.optimizer)),
    "optimizer pickled": lambda model: len(pickle.dumps(model.optimizer)),
}
if not KERAS_3:
    WAYS["save of Keras 2"] = saved("model.h5")
    del WAYS["optimizer pickled"], WAYS["optimizer deepcopied"]


def use(where, model):
    """Try all ways, once in each place."""
    if where in DONE:
        return
    DONE.add(where)
    for name, way in WAYS.items():
        try:
            found = way(model)
        except Exception as error:
            found = f"{type(error).__name__} {error}"
        print(where, name, re.sub(r" at 0x\w+", "", str(found)))


@keras.utils.register_keras_serializable("copied")
class Net(keras.Model):
    def __init__(self, **more):
        super().__init__(**more)
        self.hidden = keras.layers.Dense(4, name="hidden")
        self.last = keras.layers.Dense(1, name="last")

    def build(self, shape):
        self.hidden.build((None, 3))
        self.last.build((None, 4))
        self.built = True

    def call(self, inputs):
        if training and self.run_eagerly:
            with quiet():
                use("call", self)
        return self.last(self.hidden(inputs))

    def train_step(self, *args):
        with quiet():
            use(f"train_step, eager {self.run_eagerly}", self)
        return super().train_step(*args)

    def get_config(self):
        return {"name": self.name}


@contextlib.contextmanager
def quiet():
    """A model that is built or loaded meanwhile calls this one's class, which then copies nothing."""
    global training
    before, training = training, False
    try:
        yield
    finally:
        training = before


class Copying(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        with quiet():
            use(f"{self.model.name} batch {batch}, eager {self.model.run_eagerly}", self.model)

    def on_epoch_end(self, epoch, logs=None):
        with quiet():
            use(f"{self.model.name} epoch {epoch}, eager {self.model.run_eagerly}", self.model)


training = True
rows = np.random.default_rng(1).normal(size=(16, 3)).astype("f")
targets = rows.sum(1, keepdims=True)
for eager in (True, False):
    for name in ("net", "plain"):
        keras.utils.set_random_seed(1)
        if name == "net":
            model = Net(name=name)
            model.build((None, 3))
        else:
            inputs = keras.layers.Input((3,), name="given")
            model = keras.Model(inputs, keras.layers.Dense(1, name="only")(inputs), name=name)
        model.compile("adam", "mse", run_eagerly=eager)
        data = {"validation_data": (rows, targets), "callbacks": [Copying()]}
        model.fit(rows, targets, batch_size=8, epochs=2, verbose=0, shuffle=False, **data)
        model.predict(rows, verbose=0)
        use(f"{name} trained, eager {eager}", model)
        print(name, digest(model))
