"""An eager training from a loader of the program's, whose classes override what they can and copy themselves.

usage: python hostile_eager.py     prints what was trained and copied; writes how often each override was used
"""

import collections
import copy
import hashlib
import pickle

import keras
import numpy as np

CALLS = collections.Counter()
SEEN = []
LISTS = ("weights", "trainable_variables", "variables", "trainable_weights", "non_trainable_variables", "layers")
Loader = getattr(keras.utils, "PyDataset", None) or keras.utils.Sequence
keras.utils.set_random_seed(3)


def overriding(kind, base, read=(), more=()):
    """Return a class that counts what is asked of it, and answers to some of it as nobody expects."""

    def counted(name, answer):
        def method(self, *args):
            CALLS[kind, name] += 1
            return answer(self, *args)

        return method

    def missing(self, name):
        CALLS[kind, "getattr", name] += 1
        if hasattr(base, "__getattr__"):
            return base.__getattr__(self, name)
        raise AttributeError(name)

    body = {
        "__len__": counted("len", lambda self: 0),
        "__bool__": counted("bool", lambda self: True),
        "__eq__": counted("eq", lambda self, other: self is other),
        "__hash__": counted("hash", object.__hash__),
        "__iter__": counted("iter", lambda self: iter(())),
        "__getattr__": missing,
    }
    for name in read:
        body[name] = property(counted(name, lambda self, name=name: getattr(super(made, self), name)))
    made = type(kind, (base,), {**{name: body[name] for name in body if name not in more}})
    return made


def look(where, model, optimizer=None):
    """Take note of a model and of what can be copied of it."""
    found = [where, sorted(vars(model)), [sorted(vars(layer)) for layer in (model.hidden, model.out)]]
    found += [pickle.dumps(copy.deepcopy(model.hidden.get_config())), type(copy.deepcopy(model)).__name__]
    found += [digest(model)]
    if optimizer is not None:
        found += [sorted(vars(optimizer)), str(optimizer.get_config())]
    SEEN.append(hashlib.sha256(repr(found).encode()).hexdigest())


def digest(model):
    layers = (model.hidden, model.out)
    return hashlib.sha256(b"".join(value.tobytes() for layer in layers for value in layer.get_weights())).hexdigest()


class Net(overriding("Model", keras.Model, LISTS)):
    def __init__(self):
        super().__init__()
        self.hidden = overriding("Layer", keras.layers.Dense)(6, "relu", name="hidden")
        self.out = keras.layers.Dense(1, name="out")

    def call(self, inputs, training=False):
        CALLS["Model", "call"] += 1
        if self.hidden.built and self.out.built:
            look("call", self)
        return self.out(self.hidden(inputs))

    def __deepcopy__(self, memo):
        CALLS["Model", "deepcopy"] += 1
        return dict(vars(self))

    def train_step(self, *args):
        CALLS["Model", "train_step"] += 1
        result = super().train_step(*args)
        look("train_step", self, self.optimizer)
        return result


class Batches(overriding("Loader", Loader, more=("__len__",))):
    def __len__(self):
        CALLS["Loader", "len"] += 1
        return 3

    def __getitem__(self, index):
        CALLS["Loader", "getitem"] += 1
        return rows[8 * index : 8 * index + 8], targets[8 * index : 8 * index + 8]


class Error(overriding("Error", keras.losses.Loss)):
    def call(self, y_true, y_pred):
        CALLS["Error", "call"] += 1
        return (y_true - y_pred) ** 2


class Looking(overriding("Callback", keras.callbacks.Callback)):
    def on_train_batch_begin(self, batch, logs=None):
        look("begin", model, model.optimizer)

    def on_train_batch_end(self, batch, logs=None):
        look("end", model, model.optimizer)
        model.save_weights("kept.weights.h5")
        SEEN.append(repr(float(logs["loss"])))

    def on_test_batch_end(self, batch, logs=None):
        look("test", model)


rows = np.random.default_rng(1).normal(size=(24, 3)).astype("f")
targets = rows.sum(1, keepdims=True)
model = Net()
optimizer = overriding("Optimizer", keras.optimizers.SGD, ("learning_rate",) if keras.__version__ < "3" else ())
model.compile(optimizer(0.05, momentum=0.9), Error(), run_eagerly=True)
model.fit(Batches(), epochs=2, verbose=0, shuffle=False, validation_data=Batches(), callbacks=[Looking()])
model.evaluate(Batches(), verbose=0)
model.predict(rows, batch_size=8, verbose=0)
print(digest(model), len(SEEN), hashlib.sha256("".join(SEEN).encode()).hexdigest())
with open("calls.txt", "w") as file:
    for key, number in sorted(CALLS.items(), key=str):
        file.write(f"{' '.join(key)} {number}\n")
