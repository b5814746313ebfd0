import random

import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(3)
rng = random.Random(3)

GOOD = "great wonderful lovely superb brilliant charming excellent enjoyable".split()
BAD = "awful boring terrible dull poor weak horrible tedious".split()
FILL = ("the a movie film plot actor scene was and it with music story of in this that "
        "really quite very ending camera watched evening friend script director").split()


def make_review():
    """A review is positive when it holds more good words than bad words."""
    n = rng.randint(6, 20)
    words = [rng.choice(FILL) for _ in range(n)]
    label = rng.randint(0, 1)
    major, minor = (GOOD, BAD) if label else (BAD, GOOD)
    n_major = rng.randint(2, 4)
    n_minor = rng.randint(0, n_major - 1)
    for w in [rng.choice(major) for _ in range(n_major)] + [rng.choice(minor) for _ in range(n_minor)]:
        words.insert(rng.randint(0, len(words)), w)
    return " ".join(words), label


reviews = [make_review() for _ in range(3000)]
texts = np.array([r[0] for r in reviews])
labels = np.array([r[1] for r in reviews], dtype="float32")
train_x, val_x, test_x = texts[:2200], texts[2200:2600], texts[2600:]
train_y, val_y, test_y = labels[:2200], labels[2200:2600], labels[2600:]

MAX_LEN = 100
vectorize = layers.TextVectorization(max_tokens=500, output_sequence_length=MAX_LEN)
vectorize.adapt(train_x)
print("vocabulary:", vectorize.vocabulary_size())
print("example:", texts[0], "->", int(labels[0]))


def dataset(x, y, training=False):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    if training:
        ds = ds.shuffle(len(x))
    ds = ds.batch(64).map(lambda t, l: (vectorize(t), l))
    return ds.prefetch(tf.data.AUTOTUNE)


train_ds, val_ds, test_ds = dataset(train_x, train_y, True), dataset(val_x, val_y), dataset(test_x, test_y)

inputs = keras.Input(shape=(MAX_LEN,), dtype="int64")
x = layers.Embedding(vectorize.vocabulary_size(), 32)(inputs)
x = layers.LSTM(32)(x)
x = layers.Dropout(0.2)(x)
outputs = layers.Dense(1, activation="sigmoid")(x)
model = keras.Model(inputs, outputs)

model.compile(optimizer=keras.optimizers.Adam(2e-3), loss="binary_crossentropy", metrics=["accuracy"])
model.fit(train_ds, validation_data=val_ds, epochs=7, verbose=2)

loss, acc = model.evaluate(test_ds, verbose=0)
print(f"test loss {loss:.3f}, test accuracy {acc:.3f}")

samples = np.array(["the film was superb and the story charming", "boring plot and a terrible ending"])
for s, p in zip(samples, model.predict(vectorize(tf.constant(samples)), verbose=0)[:, 0]):
    print(f"{p:.2f}  {s}")
