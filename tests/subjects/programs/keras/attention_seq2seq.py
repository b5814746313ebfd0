"""Dates are rewritten by an encoder and a decoder with attention, trained by fit on words that are given."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(7)
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
CHARS = sorted({*"0123456789-. ", *"".join(MONTHS)})
START = len(CHARS)


def pairs(n):
    rng = np.random.default_rng(7)
    for _ in range(n):
        day, month = rng.integers(1, 29), rng.integers(12)
        yield f"{day:02d} {MONTHS[month]}", f"{month + 1:02d}-{day:02d}"


def encode(texts):
    return np.array([[CHARS.index(c) for c in text] for text in texts])


sources, targets = (encode(side) for side in zip(*pairs(160)))
shifted = np.concatenate([np.full((len(targets), 1), START), targets[:, :-1]], 1)

encoder_in = keras.Input((None,), name="source")
decoder_in = keras.Input((None,), name="so_far")
embedded = layers.Embedding(len(CHARS), 12, name="source_embedding")(encoder_in)
encoded, state = layers.GRU(20, return_sequences=True, return_state=True, name="encoder")(embedded)
wanted = layers.Embedding(len(CHARS) + 1, 12, name="target_embedding")(decoder_in)
decoded = layers.GRU(20, return_sequences=True, name="decoder")(wanted, initial_state=state)
context = layers.Attention(use_scale=True, name="attention")([decoded, encoded])
hidden = layers.Dense(24, activation="tanh", name="mix")(layers.Concatenate(name="both")([context, decoded]))
chars = layers.Dense(len(CHARS), activation="softmax", name="chars")(hidden)
model = keras.Model([encoder_in, decoder_in], chars)
model.compile(keras.optimizers.Adam(2e-2), "sparse_categorical_crossentropy", metrics=["accuracy"])


class Batches(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch} loss {logs['loss']:.6f} val_loss {logs['val_loss']:.6f}")


model.fit([sources, shifted], targets, batch_size=32, epochs=3, validation_split=0.2, callbacks=[Batches()], verbose=0)


def translate(source):
    so_far = np.full((1, 1), START)
    for _ in range(5):
        best = np.argmax(model.predict([source[None], so_far], verbose=0)[0, -1])
        so_far = np.concatenate([so_far, [[best]]], 1)
    return "".join(CHARS[i] for i in so_far[0, 1:])


print(translate(sources[-1]))
model.save_weights("dates.weights.h5")
print(np.random.rand())
