"""A training whose classes override what they can, count how often that is used, and are copied while they train.

usage: python overriding.py     prints the history, a digest of the weights, and how often each override was used
"""

import collections
import copy
import hashlib
import pickle

import numpy as np
import tensorflow as tf

keras = tf.keras
CALLS = collections.Counter()
HISTORY = []
keras.utils.set_random_seed(3)


def of(kind):
    """Overrides that count their calls, and answer as nobody expects."""

    class Overrides:
        def __len__(self):
            CALLS[kind, "len"] += 1
            return 0

        def __bool__(self):
            CALLS[kind, "bool"] += 1
            return True

        def __eq__(self, other):
            CALLS[kind, "eq"] += 1
            return NotImplemented

        __hash__ = object.__hash__

        def __getattr__(self, name):
            CALLS[kind, "getattr", name] += 1
            raise AttributeError(name)

        def __setattr__(self, name, value):
            CALLS[kind, "setattr", name] += 1
            super().__setattr__(name, value)

        def __iter__(self):
            CALLS[kind, "iter"] += 1
            return iter(())

    return Overrides


def counted(kind, base, *names):
    """Properties that count how often they are read."""

    def read(name):
        def value(self):
            CALLS[kind, name] += 1
            return getattr(super(cls, self), name)

        return property(value)

    cls = type(kind, (base,), {name: read(name) for name in names})
    return cls


LISTS = ("weights", "trainable_variables", "variables", "trainable_weights", "non_trainable_variables", "layers")


class Scale(counted("Layer", keras.layers.Layer, *LISTS[:5]), of("Scale")):
    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=(int(shape[-1]),), initializer="ones")

    def call(self, inputs):
        CALLS["Scale", "call"] += 1
        if isinstance(inputs, np.ndarray):
            raise TypeError("an array")
        return inputs * self.scale


class Net(counted("Model", keras.Model, *LISTS), of("Net")):
    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(6, "relu")
        self.scaled = Scale()
        self.out = keras.layers.Dense(1)

    def call(self, inputs, training=False):
        CALLS["Net", "call"] += 1
        # A copy that nobody trains, as targets are made.
        if not hasattr(self, "size"):
            self.size = len(pickle.dumps({"size": 3}))
        return self.out(self.scaled(self.hidden(inputs)))

    def train_step(self, data):
        CALLS["Net", "train_step"] += 1
        return super().train_step(data)

    def get_config(self):
        CALLS["Net", "get_config"] += 1
        return {}

    def __deepcopy__(self, memo):
        CALLS["Net", "deepcopy"] += 1
        twin = Net()
        twin(np.zeros((1, 3), "f"))
        twin.set_weights(self.get_weights())
        return twin

    def __reduce__(self):
        CALLS["Net", "reduce"] += 1
        return (list, ())


class Error(keras.losses.Loss, of("Error")):
    def call(self, y_true, y_pred):
        CALLS["Error", "call"] += 1
        return tf.reduce_mean(tf.square(y_true - y_pred), -1)


class Momentum(counted("Momentum", keras.optimizers.SGD, "learning_rate"), of("Momentum")):
    def get_config(self):
        CALLS["Momentum", "get_config"] += 1
        return super().get_config()


class Distance(keras.metrics.MeanAbsoluteError, of("Distance")):
    pass


class Saving(keras.callbacks.Callback, of("Saving")):
    def on_train_batch_end(self, batch, logs=None):
        model = self._model if hasattr(type(self), "_model") else self.model
        copy.deepcopy(model)
        pickle.loads(pickle.dumps(model))
        model.save_weights("kept.weights.h5")
        HISTORY.append(float(logs["loss"]))


rows = np.random.default_rng(1).normal(size=(24, 3)).astype("f")
data = tf.data.Dataset.from_tensor_slices((rows, rows.sum(1, keepdims=True))).batch(8)
model = Net()
model.compile(Momentum(0.05, momentum=0.9), Error(), metrics=[Distance(name="distance")])
model.fit(data, epochs=2, verbose=0, validation_data=data, callbacks=[Saving()])
model.evaluate(data, verbose=0)
model.predict(rows, verbose=0)
print(HISTORY)
print(hashlib.sha256(b"".join(np.asarray(value).tobytes() for value in model.get_weights())).hexdigest())
with open("calls.txt", "w") as file:
    for key, number in sorted(CALLS.items(), key=str):
        file.write(f"{' '.join(key)} {number}\n")
