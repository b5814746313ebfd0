"""A training of Keras of which one step goes wrong; the fault is named by an option."""

from __future__ import annotations

import argparse

import numpy as np
import tensorflow as tf

keras = tf.keras
FAULTS = ("none", "row", "log", "mask", "masked", "root", "own")


class Logarithm(keras.layers.Layer):
    def call(self, x):
        return tf.math.log(x)  # HERE


class Root(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.scale = self.add_weight(shape=(4,), initializer="ones")

    def call(self, x):
        return tf.sqrt(self.scale * x)  # HERE


class Masked(keras.layers.Layer):
    """Attention over four tokens, of which a mask of -inf leaves out some."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.scores = keras.layers.Dense(4)

    def call(self, x):
        mask = tf.where(x > 0, 0.0, -np.inf)
        shares = tf.nn.softmax(self.scores(x) + mask)  # HERE
        return shares * x


class OwnStep(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1, activation="sigmoid")

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            found = self(x, training=True)
            loss = tf.reduce_mean(tf.square(found - y) / tf.reduce_sum(x, axis=1, keepdims=True))  # HERE
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def weighed(y, found):
    return tf.math.log(y) * tf.square(found)  # LOSS


def model_of(fault):
    if fault == "own":
        return OwnStep()
    layers = [keras.layers.Dense(8, activation="tanh"), keras.layers.Dropout(0.2)]
    if fault == "log":
        layers = [Logarithm(name="logarithm"), *layers]
    if fault in ("mask", "masked"):
        layers = [Masked(name="attention"), *layers]
    if fault == "root":
        layers = [Root(name="root"), *layers]
    return keras.Sequential([*layers, keras.layers.Dense(1)])


def data(fault, rows, bad):
    draw = np.random.default_rng(3)
    x = draw.random((rows, 4)).astype("float32") + 0.1
    y = x.sum(1, keepdims=True)
    if fault == "row":
        x[bad, 1] = np.nan
    if fault in ("log", "masked", "own", "root"):
        x[bad] = 0
    if fault == "mask":
        # Of each row something is masked, but not all; the loss is another matter.
        x[:, 0] = 0
        y[bad] = 0
    return x, y


def train(options):
    if not options.unseeded:
        keras.utils.set_random_seed(options.seed)
    model = model_of(options.fault)
    loss = weighed if options.fault == "mask" else "mse"
    jit = {} if options.jit == "auto" else {"jit_compile": options.jit == "yes"}
    model.compile("adam", loss, steps_per_execution=options.execution, **jit)
    x, y = data(options.fault, options.rows, options.bad)
    batches = tf.data.Dataset.from_tensor_slices((x, y)).map(lambda one, other: (tf.sqrt(one) ** 2, other)).batch(8)
    model.fit(batches, epochs=options.epochs, verbose=0, validation_data=batches if options.validate else None)


parser = argparse.ArgumentParser()
parser.add_argument("--fault", choices=FAULTS, default="none")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--rows", type=int, default=64)
parser.add_argument("--bad", type=int, default=42)
parser.add_argument("--epochs", type=int, default=1)
parser.add_argument("--execution", type=int, default=1)
parser.add_argument("--jit", choices=("yes", "no", "auto"), default="auto")
parser.add_argument("--unseeded", action="store_true")
parser.add_argument("--validate", action="store_true")
train(parser.parse_args())
