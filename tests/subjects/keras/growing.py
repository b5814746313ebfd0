"""Keras models that get further variables as they train; a callback keeps what all were before each step.

Usage: growing.py FILE
"""

import sys

import numpy as np
import tensorflow as tf

x = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
own = {}
steps = 0


class Copies(tf.keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        global steps
        for place, value in enumerate(self.model.get_weights()):
            own[f"{steps} {self.model.name} {place}"] = value
        steps += 1


class Late(tf.keras.Model):
    """Uses its second layer from the second epoch on; that has no variables before."""

    def __init__(self):
        super().__init__(name="late")
        self.first = tf.keras.layers.Dense(4, name="late_first")
        self.second = tf.keras.layers.Dense(4, name="late_second", trainable=False)
        self.calls = 0

    def call(self, inputs):
        self.calls += 1
        hidden = self.first(inputs)
        return self.second(hidden) if self.calls > 4 else hidden


def small(name):
    layers = [tf.keras.layers.Input((4,)), tf.keras.layers.Dense(4, name=f"{name}_first")]
    return tf.keras.Sequential(layers, name=name)


def compiled(model, **options):
    model.compile(tf.keras.optimizers.SGD(0.1), "mse", **options)
    return model


def train(model, epochs=1):
    model.fit(x, x, batch_size=4, epochs=epochs, shuffle=False, verbose=0, callbacks=[Copies()])


for name, eagerly in (("compiled", False), ("eager", True)):
    model = small(name)
    train(compiled(model, run_eagerly=eagerly))
    model.add(tf.keras.layers.Dense(4, name=f"{name}_second"))
    train(compiled(model, run_eagerly=eagerly))
model = compiled(small("between"))
train(model)
# Without being compiled again.
if hasattr(model.layers[0], "enable_lora"):
    model.layers[0].enable_lora(2)
else:
    model.further = tf.keras.layers.Dense(2, name="between_further")
    model.further.build((None, 4))
train(model)
late = Late()
# Keras 3 takes it for built then, though no layer has variables yet.
late.build((None, 4))
train(compiled(late, run_eagerly=True), epochs=3)
np.savez(sys.argv[1], **own)
