"""Keras: a bias initializer of -10 before a ReLU."""

import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
x, y = load_digits(return_X_y=True)
model = keras.Sequential(
    [
        keras.layers.Input((64,)),
        keras.layers.Dense(32, "relu"),
        keras.layers.Dense(32, "relu", bias_initializer=keras.initializers.Constant(-10.0)),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x / 16, y, batch_size=64, epochs=3, verbose=2)
