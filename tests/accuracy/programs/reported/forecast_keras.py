"""Trains a Keras LSTM to forecast the next value of a standardised series."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(12)
WINDOW = 16

rng = np.random.default_rng(12)
t = np.arange(700)
series = np.sin(t / 6) + 0.5 * np.sin(t / 2.3) + 0.1 * rng.normal(size=len(t))
series = ((series - series.mean()) / series.std()).astype("float32")

windows = np.lib.stride_tricks.sliding_window_view(series, WINDOW + 1)
x, y = windows[:, :-1, None], windows[:, -1]
x_train, y_train, x_test, y_test = x[:500], y[:500], x[500:], y[500:]

model = keras.Sequential(
    [
        keras.Input((WINDOW, 1)),
        layers.LSTM(16),
        layers.Dense(16, activation="relu"),
        layers.Dense(1, activation="relu"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
history = model.fit(x_train, y_train, batch_size=25, epochs=6, verbose=0)
print("training mse by epoch", [round(v, 3) for v in history.history["loss"]])
print(f"test mse {model.evaluate(x_test, y_test, verbose=0):.3f}")
