# %% imports
import numpy as np
import keras
from keras import layers
from sklearn.metrics import confusion_matrix

# %% config
N = 1600
CHANNELS = 6
STEPS = 72
N_CLASSES = 4
keras.utils.set_random_seed(8)

# %% simulated wearable recordings, stored as (recording, sensor, time)
rng = np.random.default_rng(8)
t = np.arange(STEPS) / 24.0


def recording(activity):
    f = rng.uniform(0.9, 1.5)
    ph = rng.uniform(0, 2 * np.pi)
    lag = {0: 0.0, 1: np.pi / 2, 2: np.pi, 3: -np.pi / 2}[activity]
    amp = rng.uniform(0.7, 1.3, size=CHANNELS)
    rec = np.empty((CHANNELS, STEPS))
    for c in range(3):
        rec[c] = amp[c] * np.sin(2 * np.pi * f * t + ph)
        rec[c + 3] = amp[c + 3] * np.sin(2 * np.pi * f * t + ph + lag)
    return rec + rng.normal(0, 0.5, rec.shape)


y = rng.integers(0, N_CLASSES, size=N)
raw = np.stack([recording(a) for a in y]).astype("float32")
print("raw", raw.shape)

# %% split and normalise each sensor
n_train = int(0.75 * N)
mean = raw[:n_train].mean(axis=(0, 2), keepdims=True)
std = raw[:n_train].std(axis=(0, 2), keepdims=True)
raw = (raw - mean) / std

X = raw.reshape(N, STEPS, CHANNELS)
x_train, y_train = X[:n_train], y[:n_train]
x_val, y_val = X[n_train:], y[n_train:]
print("train", x_train.shape, "val", x_val.shape)

# %% model
inputs = keras.Input(shape=(STEPS, CHANNELS))
h = layers.Conv1D(16, 5, activation="relu")(inputs)
h = layers.MaxPooling1D(2)(h)
h = layers.Conv1D(24, 5, activation="relu")(h)
h = layers.GlobalAveragePooling1D()(h)
h = layers.Dropout(0.2)(h)
outputs = layers.Dense(N_CLASSES, activation="softmax")(h)
model = keras.Model(inputs, outputs)
model.summary()

# %% train
model.compile(
    optimizer=keras.optimizers.Adam(2e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(x_train, y_train, epochs=8, batch_size=32, validation_data=(x_val, y_val), verbose=2)

# %% evaluate
pred = model.predict(x_val, verbose=0).argmax(-1)
print(confusion_matrix(y_val, pred))
print("val accuracy", (pred == y_val).mean())
