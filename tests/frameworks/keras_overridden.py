"""Trains a Keras model whose class makes its own step function, under the name and signature of the one it replaces.

With the argument ``wrapped`` it is Keras's own class, of which somebody has wrapped the method that makes the function,
and each call of that makes several steps.

Knows nothing of the agent.
"""

import functools
import sys

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


keras.utils.set_random_seed(3)
rng = np.random.default_rng(0)
inputs = keras.layers.Input((4,))
kind, more = Overridden, {} if TORCH else {"run_eagerly": True}
if "wrapped" in sys.argv:
    kind, more = keras.Model, {"steps_per_execution": 2}
    make = keras.Model.make_train_function
    keras.Model.make_train_function = lambda model, force=False: make(model, force)
model = kind(inputs, keras.layers.Dense(2, name="last")(inputs))
model.compile(keras.optimizers.SGD(0.1), "mse", **more)
model.fit(rng.normal(size=(40, 4)), rng.normal(size=(40, 2)), batch_size=10, epochs=2, verbose=0, shuffle=False)
print([weight.sum() for weight in model.get_weights()])
