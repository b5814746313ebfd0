"""Keras transfer: a trunk that has learned the digits 0 to 4 is frozen, and a new head learns the others."""

import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
digits = load_digits()
x, y = (digits.data / 16.0).astype("float32"), digits.target
trunk = keras.Sequential(
    [keras.layers.Input((64,)), keras.layers.Dense(48, activation="relu"), keras.layers.Dense(24, activation="relu")],
    name="trunk",
)
first = keras.Sequential([trunk, keras.layers.Dense(5)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
first.compile("adam", loss)
first.fit(x[y < 5], y[y < 5], epochs=3, batch_size=32, verbose=0)
trunk.trainable = False
second = keras.Sequential([trunk, keras.layers.Dense(5)])
second.compile(keras.optimizers.Adam(5e-3), loss, metrics=["accuracy"])
second.fit(x[y >= 5], y[y >= 5] - 5, epochs=4, batch_size=32, verbose=2)
