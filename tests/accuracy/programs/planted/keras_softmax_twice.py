"""Keras: the last layer is a softmax, and the loss is told that it gets logits."""

import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
x, y = load_digits(return_X_y=True)
model = keras.Sequential(
    [keras.layers.Input((64,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(10, activation="softmax")]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(x / 16, y, batch_size=64, epochs=4, verbose=2)
