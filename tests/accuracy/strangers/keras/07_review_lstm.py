"""Sentiment of short synthetic reviews with an LSTM."""
import keras
import numpy as np
from keras import layers
from keras.utils import pad_sequences

VOCAB = 400
MAXLEN = 60
N_TRAIN, N_VAL = 2400, 600
EPOCHS = 4

keras.utils.set_random_seed(17)
rng = np.random.default_rng(17)

good = np.arange(10, 60)
bad = np.arange(60, 110)
neutral = np.arange(110, VOCAB)


def review():
    label = int(rng.integers(0, 2))
    n = int(rng.integers(5, 22))
    words = rng.choice(neutral, size=n)
    k = max(2, n // 4)
    pos = rng.choice(n, size=k, replace=False)
    own, other = (good, bad) if label else (bad, good)
    words[pos] = rng.choice(own, size=k)
    if k > 2:
        words[pos[0]] = rng.choice(other)
    return words.tolist(), label


def corpus(n):
    texts, labels = zip(*(review() for _ in range(n)))
    return list(texts), np.array(labels, dtype="float32")


texts_train, y_train = corpus(N_TRAIN)
texts_val, y_val = corpus(N_VAL)
print("mean length", np.mean([len(t) for t in texts_train]))

x_train = pad_sequences(texts_train, maxlen=MAXLEN, padding="post", truncating="post")
x_val = pad_sequences(texts_val, maxlen=MAXLEN, padding="post", truncating="post")

model = keras.Sequential()
model.add(keras.Input(shape=(MAXLEN,), dtype="int32"))
model.add(layers.Embedding(VOCAB, 16))
model.add(layers.LSTM(16))
model.add(layers.Dropout(0.2))
model.add(layers.Dense(1, activation="sigmoid"))

model.compile(
    loss="binary_crossentropy",
    optimizer=keras.optimizers.Adam(learning_rate=4e-3),
    metrics=["accuracy"],
)

history = model.fit(
    x_train,
    y_train,
    batch_size=64,
    epochs=EPOCHS,
    validation_data=(x_val, y_val),
    verbose=2,
)

print("val accuracy by epoch:", [round(a, 3) for a in history.history["val_accuracy"]])
print("final val loss %.4f" % history.history["val_loss"][-1])
