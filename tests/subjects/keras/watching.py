"""What a user's callback sees of a training with Keras: weights before each step, logs after it."""

import numpy as np


def watching(keras, seen, path, array):
    """Return a callback's class that notes what it sees under ``<name>|<step>|<variable or log>``.

    keras: the package whose models are trained.
    seen: a dictionary, which gets the arrays.
    path, array: give a variable's path and its values.
    """

    class Watching(keras.callbacks.Callback):
        def __init__(self, name):
            super().__init__()
            self.name = name
            self.step = 0

        def on_train_batch_begin(self, batch, logs=None):
            for variable in self.model.trainable_variables:
                seen[f"{self.name}|{self.step}|{path(variable)}"] = array(variable).copy()

        def on_train_batch_end(self, batch, logs=None):
            seen.update({f"{self.name}|{self.step}|{key}": np.float32(value) for key, value in logs.items()})
            self.step += 1

    return Watching
