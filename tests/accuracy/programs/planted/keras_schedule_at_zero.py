"""Keras: a polynomial decay over ten steps, where ten epochs are meant."""

import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
x, y = load_digits(return_X_y=True)
model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(10)])
rate = keras.optimizers.schedules.PolynomialDecay(1e-2, decay_steps=10, end_learning_rate=0.0)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(rate), loss)
model.fit(x / 16, y, batch_size=64, epochs=4, verbose=2)
