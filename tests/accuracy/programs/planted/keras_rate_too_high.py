"""Keras: a learning rate of 3 for a regression, without scaling of the target."""

import keras
from sklearn.datasets import load_diabetes

keras.utils.set_random_seed(0)
x, y = load_diabetes(return_X_y=True)
model = keras.Sequential([keras.layers.Input((10,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(3.0), "mse")
model.fit(x, y, batch_size=32, epochs=5, verbose=2)
