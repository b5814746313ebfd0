"""Trains Keras models whose step functions are not made by Keras's own method; knows nothing of the agent.

One's class makes it itself, under the name and signature of the method it replaces. Of the other, somebody has wrapped
that method, and on TensorFlow each call of the function makes several steps.
"""

import functools

import keras
import numpy as np

TORCH = keras.backend.backend() == "torch"


class Overridden(keras.Model):
    """Its function is made without the one of the base class."""

    @functools.wraps(keras.Model.make_train_function)
    def make_train_function(self, force=False):
        self.train_function = self.one_step
        return self.train_function

    def one_step(self, data):
        return self.train_step(data[0] if TORCH else next(data))


def train(kind, name, **more):
    rng = np.random.default_rng(0)
    inputs = keras.layers.Input((4,))
    model = kind(inputs, keras.layers.Dense(2, name=name)(inputs))
    model.compile(keras.optimizers.SGD(0.1), "mse", **more)
    log = model.fit(rng.normal(size=(40, 4)), rng.normal(size=(40, 2)), 10, 2, verbose=0, shuffle=False)
    print(log.history, [weight.tobytes().hex() for weight in model.get_weights()])


keras.utils.set_random_seed(3)
train(Overridden, "overridden", run_eagerly=True)
make = keras.Model.make_train_function
keras.Model.make_train_function = lambda model, force=False: make(model, force)
train(keras.Model, "wrapped", **({} if TORCH else {"steps_per_execution": 2}))
