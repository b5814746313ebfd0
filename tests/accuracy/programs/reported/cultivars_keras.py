"""Trains a Keras classifier on the measurements of three grape cultivars."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)

rng = np.random.default_rng(3)
y = rng.integers(0, 3, 180)
x = rng.normal(0.0, 1.0, (3, 13))[y] + rng.normal(0.0, 0.8, (180, 13))
x = x.astype("float32")

model = keras.Sequential(
    [
        keras.Input((13,)),
        layers.Dense(32, activation="relu"),
        layers.Dense(16, activation="relu"),
        layers.Dense(3),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(),
    metrics=["accuracy"],
)
history = model.fit(x[:130], y[:130], batch_size=10, epochs=10, verbose=0)
for epoch in (0, 4, 9):
    print(f"epoch {epoch} loss {history.history['loss'][epoch]:.3f} acc {history.history['accuracy'][epoch]:.3f}")
loss, accuracy = model.evaluate(x[130:], y[130:], verbose=0)
print(f"test loss {loss:.3f} accuracy {accuracy:.3f}")
