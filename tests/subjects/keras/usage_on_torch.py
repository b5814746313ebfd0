"""Trainings of Keras on PyTorch, each with its loss and its layers, in three steps and two of validation."""

import hashlib
import sys

import keras
import numpy as np

layers, losses = keras.layers, keras.losses
X = np.random.RandomState(0).rand(12, 4).astype("f4")
Y = np.array([0, 2, 2, 1] * 3)
TARGETS = (3 * np.random.RandomState(1).rand(12, 1) - 1).astype("f4")
HOT = np.eye(3, dtype="f4")[Y]


class OwnLoss(losses.Loss):
    """A loss of the program's, which looks like no other."""

    def __getattr__(self, name):
        print("asked for", name)
        raise AttributeError(name)

    def call(self, y_true, y_pred):
        return keras.ops.mean((y_true - y_pred) ** 2, -1)


def model_of(last=None, units=3):
    return keras.Sequential([layers.Input((4,)), layers.Dense(5, "relu"), layers.Dense(units, last)])


def fit(name, model, loss, y=Y, x=X, **more):
    model.compile(keras.optimizers.SGD(0.1), loss, jit_compile=False)
    log = model.fit(x, y, batch_size=4, verbose=0, shuffle=False, validation_data=(x[:8], y[:8]), **more)
    variables = b"".join(keras.ops.convert_to_numpy(variable).tobytes() for variable in model.variables)
    print(name, hashlib.sha1(variables).hexdigest(), log.history)


class Untold(keras.Model):
    """A model that is not told whether it is trained, so that its layers are not either."""

    def __init__(self):
        super().__init__()
        self.drop, self.last = layers.Dropout(0.3), layers.Dense(1)

    def call(self, x):
        return self.last(self.drop(x))


def with_modes():
    frozen = layers.BatchNormalization(trainable=False)
    return keras.Sequential(
        [layers.Input((4,)), layers.BatchNormalization(), frozen, layers.Dropout(0.2), layers.Dense(1)], name="modes"
    )


def masked():
    return keras.Sequential([layers.Input((4, 1)), layers.Masking(), layers.Dense(3, "softmax")])


def frozen_last():
    model = model_of()
    model.layers[-1].trainable = False
    return model


sparse = losses.SparseCategoricalCrossentropy
TRAININGS = {
    "logits": lambda: (model_of(), sparse()),
    "probabilities": lambda: (model_of("softmax"), sparse(from_logits=True)),
    "frozen": lambda: (frozen_last(), sparse()),
    "image": lambda: (
        keras.Sequential([layers.Input((2, 2, 1)), layers.Conv2D(3, 2), layers.Reshape((3,))]),
        *(sparse(from_logits=True), Y, X.reshape(-1, 2, 2, 1)),
    ),
    "named": lambda: (model_of("softmax"), "categorical_crossentropy", HOT),
    "ignored": lambda: (model_of(), sparse(from_logits=True, ignore_class=2)),
    "sum": lambda: (model_of("softmax"), sparse(reduction="sum")),
    "masked": lambda: (masked(), sparse(), np.stack([Y] * 4, 1), X[..., None]),
    "binary": lambda: (
        model_of("sigmoid", 1),
        losses.BinaryCrossentropy(from_logits=True),
        (Y > 1).astype("f4")[:, None],
    ),
    "mse": lambda: (model_of("sigmoid", 1), "mse", TARGETS),
    "Huber": lambda: (model_of("relu6", 1), losses.Huber(), TARGETS),
    "linear": lambda: (model_of(None, 1), "mse", TARGETS),
    "modes": lambda: (with_modes(), "mse", TARGETS),
    "untold": lambda: (Untold(), "mse", TARGETS),
    "own": lambda: (model_of("sigmoid", 1), OwnLoss(), TARGETS),
    "half": lambda: (
        keras.Sequential([layers.Input((4,)), layers.Dense(3, dtype="mixed_float16"), layers.Softmax(dtype="float32")]),
        sparse(),
    ),
    "guess": lambda: (model_of("softmax"), sparse(name="labels"), np.tile(Y, 8), np.tile(X, (8, 1))),
}

for name in sys.argv[1:]:
    keras.utils.set_random_seed(0)
    fit(name, *TRAININGS[name]())
