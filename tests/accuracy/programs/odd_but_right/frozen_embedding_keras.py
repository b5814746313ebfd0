"""Trains a Keras text classifier on word vectors that are given and stay as they are."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(82)
WORDS, LENGTH, DIM = 200, 12, 16

rng = np.random.default_rng(82)
vectors = rng.normal(size=(WORDS, DIM)).astype("float32")
vectors[0] = 0.0
mood = vectors @ rng.normal(size=DIM)


def texts(n):
    ids = rng.integers(1, WORDS, (n, LENGTH))
    for row, size in enumerate(rng.integers(4, LENGTH + 1, n)):
        ids[row, size:] = 0
    return ids, (mood[ids].sum(axis=1) > 0).astype("float32")


table = layers.Embedding(WORDS, DIM, mask_zero=True, trainable=False)
inputs = keras.Input((LENGTH,), dtype="int32")
h = layers.GlobalAveragePooling1D()(table(inputs))
h = layers.Dense(16, activation="relu")(h)
model = keras.Model(inputs, layers.Dense(1)(h))
table.set_weights([vectors])

model.compile(
    optimizer=keras.optimizers.Adam(0.01),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)],
)
x, y = texts(1000)
history = model.fit(x, y, batch_size=40, epochs=6, verbose=0)
print("loss by epoch", [round(v, 3) for v in history.history["loss"]])
loss, accuracy = model.evaluate(*texts(300), verbose=0)
print(f"held out: loss {loss:.3f} accuracy {accuracy:.3f}")
