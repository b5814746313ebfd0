"""Keras on sequences: which of three kinds of waves it is, by an LSTM or by attention."""

import sys

import keras
import numpy as np

kind = sys.argv[1] if len(sys.argv) > 1 else "lstm"
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
y = rng.integers(0, 3, 960)
time = np.arange(24) * (0.3 + 0.2 * rng.random((960, 1))) + 6.28 * rng.random((960, 1))
waves = np.stack([np.sin(time), np.sign(np.sin(time)), (time / 3.14) % 2 - 1], 1)[np.arange(960), y]
x = (waves + 0.1 * rng.standard_normal(waves.shape)).astype("float32")[..., None]
inputs = keras.Input((24, 1))
if kind == "lstm":
    h = keras.layers.LSTM(24)(inputs)
else:
    h = keras.layers.Dense(16)(inputs)
    h = keras.layers.LayerNormalization()(h + keras.layers.MultiHeadAttention(2, 8, dropout=0.1)(h, h))
    h = keras.layers.Conv1D(16, 5, activation="gelu")(h)
    h = keras.layers.GlobalAveragePooling1D()(h)
outputs = keras.layers.Dense(3)(h)
model = keras.Model(inputs, outputs)
model.compile(
    keras.optimizers.AdamW(5e-3, clipnorm=1.0),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(x, y, batch_size=32, epochs=4, verbose=2)
