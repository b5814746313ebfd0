"""Trains one model in a loop with a tape, which also predicts, and another one by ``fit`` before its loop.

usage: python tape_and_predict.py     prints a digest of the weights
"""

import hashlib

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
rows = np.random.default_rng(1).normal(size=(8, 3)).astype("f")
targets = rows.sum(1, keepdims=True)


def made(name):
    layers = [keras.layers.Dense(2, name=f"{name}_a"), keras.layers.Dense(1, name=f"{name}_b")]
    model = keras.Sequential([keras.layers.InputLayer((3,)), *layers], name=name)
    model.compile("sgd", "mse")
    return model


def loop(model):
    optimizer = keras.optimizers.SGD(0.1)
    for _ in range(2):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(rows) - targets) ** 2)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        model.predict(rows, verbose=0)


looped, fitted = made("looped"), made("fitted")
loop(looped)
looped.fit(rows, targets, verbose=0)
fitted.fit(rows, targets, verbose=0)
loop(fitted)
print([hashlib.sha256(weight.tobytes()).hexdigest() for model in (looped, fitted) for weight in model.get_weights()])
