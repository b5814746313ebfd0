import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

SEED = 11
np.random.seed(SEED)
tf.random.set_seed(SEED)

VOCAB = 300
MAXLEN = 80
PAD = 0

# words 1..20 are positive, 21..40 negative, 41..45 are negations, the rest is filler
def make_review():
    n = np.random.randint(6, 26)
    words = np.random.randint(46, VOCAB, size=n)
    total = 0
    n_opinions = np.random.randint(1, 4)
    for p in np.random.choice(np.arange(1, n), size=n_opinions, replace=False):
        pol = 1 if np.random.rand() < 0.5 else -1
        words[p] = np.random.randint(1, 21) if pol > 0 else np.random.randint(21, 41)
        if np.random.rand() < 0.3:
            words[p - 1] = np.random.randint(41, 46)
    for i, w in enumerate(words):
        s = 1 if 1 <= w <= 20 else -1 if 21 <= w <= 40 else 0
        if s and i > 0 and 41 <= words[i - 1] <= 45:
            s = -s
        total += s
    return words, total


texts, labels = [], []
while len(texts) < 6000:
    words, total = make_review()
    if total != 0:
        texts.append(list(words))
        labels.append(int(total > 0))
labels = np.array(labels)

x = keras.utils.pad_sequences(texts, maxlen=MAXLEN, padding="post", value=PAD)
x_train, y_train = x[:4500], labels[:4500]
x_test, y_test = x[4500:], labels[4500:]
print("train", x_train.shape, "test", x_test.shape)

model = keras.Sequential([
    layers.Input(shape=(MAXLEN,), dtype="int32"),
    layers.Embedding(VOCAB, 24),
    layers.LSTM(24),
    layers.Dense(16, activation="relu"),
    layers.Dropout(0.2),
    layers.Dense(1, activation="sigmoid"),
])
model.compile(
    loss="binary_crossentropy",
    optimizer=keras.optimizers.Adam(2e-3),
    metrics=["accuracy"],
)
model.summary()

history = model.fit(
    x_train, y_train,
    batch_size=64,
    epochs=6,
    validation_split=0.1,
    verbose=2,
)

loss, acc = model.evaluate(x_test, y_test, verbose=0)
print(f"test loss {loss:.4f}   test accuracy {acc:.4f}")
