"""A Keras model that gets another layer between two trainings; its callback keeps what the weights were before each step.

Usage: keras_growing.py FILE
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
        for layer in self.model.layers:
            for place, value in enumerate(layer.get_weights()):
                own[f"{steps} {layer.name} {('kernel', 'bias')[place]}"] = value
        steps += 1


def train(model, eagerly):
    model.compile(tf.keras.optimizers.SGD(0.1), "mse", run_eagerly=eagerly)
    model.fit(x, x, batch_size=4, epochs=2, shuffle=False, verbose=0, callbacks=[Copies()])


for eagerly, name in ((False, "compiled"), (True, "eager")):
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(4, name=f"{name}_first")])
    train(model, eagerly)
    model.add(tf.keras.layers.Dense(4, name=f"{name}_second"))
    train(model, eagerly)
np.savez(sys.argv[1], **own)
