"""A Keras program that looks at who has called it, and fails now and then, in saved steps and in others."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))

import numpy as np
import tensorflow as tf
from callers import callers, failing

if "tf_keras" in sys.argv:
    import tf_keras as keras
else:
    from tensorflow import keras

keras.utils.set_random_seed(0)
if hasattr(keras.config if hasattr(keras, "config") else keras.utils, "disable_traceback_filtering"):
    keras.config.disable_traceback_filtering()
else:
    tf.debugging.disable_traceback_filtering()
x, y = np.random.rand(16, 5).astype("float32"), np.random.rand(16, 3).astype("float32")
how = "look"


class Layer(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.fc = keras.layers.Dense(3)

    def call(self, x):
        if how == "look":
            callers()
        if how == "fail":
            raise KeyError("mine")
        return self.fc(x)


class Watch(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if how == "callback":
            raise KeyError("mine")


def net(**how):
    made = keras.Sequential([keras.layers.Input((5,)), Layer()])
    made.compile(keras.optimizers.SGD(0.1), "mse", **how)
    return made


def loss_of(model):
    return tf.reduce_mean((model(x, training=True) - y) ** 2)


for eager in (False, True):
    model = net(run_eagerly=eager)
    model.fit(x, y, batch_size=8, epochs=2, verbose=0)
    model.evaluate(x, y, batch_size=8, verbose=0)
    model.predict(x, batch_size=8, verbose=0)
    for call in ("fit", "evaluate", "train_on_batch"):
        how = ""
        model = net(run_eagerly=eager)
        how = "fail"
        failing(f"{call} {eager}", getattr(model, call), x, y)
    how = "callback"
    failing(f"callback {eager}", model.fit, x, y, verbose=0, callbacks=[Watch()])
    failing("wrong", model.fit, x, y[:3], verbose=0)
    how = "look"

model = net()
optimizer = keras.optimizers.SGD(0.1)


def train_step():
    if how == "fail":
        raise KeyError("mine")
    with tf.GradientTape() as tape:
        loss = loss_of(model)
    gradients = tape.gradient(loss, model.trainable_variables)
    failing("tape", tape.gradient, loss, model.trainable_variables)
    optimizer.apply_gradients(list(zip(gradients, model.trainable_variables, strict=True)))
    if how == "runtime":
        tf.debugging.assert_less(tf.reduce_sum(loss), -1.0, message="mine")
    return loss


for wrap in (lambda function: function, tf.function):
    step = wrap(train_step)
    for how in ("look", "", "", "fail", "runtime"):
        if how in ("fail", "runtime"):
            step = wrap(train_step)
        failing(how or "step", step)
        failing(how or "step", step)
print(sum(float(tf.reduce_sum(v)) for v in model.weights))
