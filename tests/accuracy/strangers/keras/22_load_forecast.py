import keras
import numpy as np
import pandas as pd
from keras import layers

WINDOW = 12
BATCH = 64
EPOCHS = 8

keras.utils.set_random_seed(64)


def hourly_load(days=150, seed=64):
    rng = np.random.default_rng(seed)
    idx = pd.date_range("2023-01-01", periods=24 * days, freq="h")
    h = idx.hour.to_numpy()
    wd = (idx.dayofweek < 5).astype(float)
    base = 50 + 12 * np.sin(2 * np.pi * (h - 8) / 24) + 5 * np.sin(4 * np.pi * h / 24) + 4 * wd
    ar = np.zeros(len(idx))
    for i in range(1, len(idx)):
        ar[i] = 0.8 * ar[i - 1] + rng.normal(0, 2.0)
    return pd.Series(base + ar, index=idx, name="load")


class WindowMaker:
    def __init__(self, values, window, batch):
        self.values = values
        self.window = window
        self.batch = batch

    def make(self, lo, hi, shuffle):
        part = self.values[lo:hi]
        return keras.utils.timeseries_dataset_from_array(
            part[: len(part) - self.window],
            targets=part[: len(part) - self.window],
            sequence_length=self.window,
            batch_size=self.batch,
            shuffle=shuffle,
            seed=1,
        )


load = hourly_load()
n = len(load)
n_train, n_val = int(0.7 * n), int(0.85 * n)
mean, std = load.iloc[:n_train].mean(), load.iloc[:n_train].std()
z = ((load - mean) / std).to_numpy("float32")[:, None]

maker = WindowMaker(z, WINDOW, BATCH)
train = maker.make(0, n_train, shuffle=True)
val = maker.make(n_train, n_val, shuffle=False)

model = keras.Sequential(
    [
        keras.Input((WINDOW, 1)),
        layers.GRU(24),
        layers.Dense(1),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="mse", metrics=["mae"])
model.fit(train, validation_data=val, epochs=EPOCHS, verbose=2)

mae_val = model.evaluate(val, verbose=0)[1] * std
print("validation MAE: %.3f MW" % mae_val)

# one-step forecasts for the last part of the series
start = n_val
windows = np.stack([z[i - WINDOW : i] for i in range(start, n)])
forecast = model.predict(windows, verbose=0)[:, 0] * std + mean
actual = load.to_numpy()[start:]
previous = load.to_numpy()[start - 1 : n - 1]
print("forecast MAE:    %.3f MW" % np.abs(forecast - actual).mean())
print("last value MAE:  %.3f MW" % np.abs(previous - actual).mean())
