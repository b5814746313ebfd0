"""LSTM sentiment model on short (synthetic) reviews, custom training loop."""
import random

import numpy as np
import tensorflow as tf

SEED = 11
random.seed(SEED)
np.random.seed(SEED)
tf.random.set_seed(SEED)

POS = ["good", "great", "fine", "lovely", "superb", "nice", "happy", "tasty"]
NEG = ["bad", "awful", "poor", "boring", "ugly", "sad", "cold", "rude"]
FILL = ["the", "a", "food", "place", "was", "and", "we", "came", "here", "with", "very",
        "service", "staff", "room", "film", "it", "on", "monday", "again", "really"]


def make_review():
    label = random.randint(0, 1)
    good, bad = (POS, NEG) if label else (NEG, POS)
    n_major = random.randint(2, 4)
    n_minor = random.randint(0, n_major - 1)
    words = ([random.choice(good) for _ in range(n_major)]
             + [random.choice(bad) for _ in range(n_minor)]
             + [random.choice(FILL) for _ in range(random.randint(3, 12))])
    random.shuffle(words)
    return words, label


reviews = [make_review() for _ in range(3000)]
vocab = {w: i + 1 for i, w in enumerate(POS + NEG + FILL)}
sequences = [[vocab[w] for w in words] for words, _ in reviews]
targets = np.array([label for _, label in reviews], dtype="float32")

MAXLEN = 100
X = tf.keras.utils.pad_sequences(sequences, maxlen=MAXLEN, padding="post")
X_train, X_val, X_test = X[:2200], X[2200:2600], X[2600:]
y_train, y_val, y_test = targets[:2200], targets[2200:2600], targets[2600:]

model = tf.keras.Sequential([
    tf.keras.Input((MAXLEN,), dtype="int32"),
    tf.keras.layers.Embedding(len(vocab) + 1, 16),
    tf.keras.layers.LSTM(24),
    tf.keras.layers.Dense(1),
])
optimizer = tf.keras.optimizers.Adam(3e-3)
loss_fn = tf.keras.losses.BinaryCrossentropy(from_logits=True)
train_acc = tf.keras.metrics.BinaryAccuracy(threshold=0.0)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_fn(y[:, None], logits)
    grads = tape.gradient(loss, model.trainable_variables)
    grads, _ = tf.clip_by_global_norm(grads, 1.0)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    train_acc.update_state(y[:, None], logits)
    return loss


@tf.function
def predict(x):
    return model(x, training=False)


def evaluate(x, y):
    logits = predict(tf.constant(x))
    acc = np.mean((logits.numpy().ravel() > 0) == (y > 0.5))
    return float(loss_fn(y[:, None], logits)), float(acc)


train_ds = tf.data.Dataset.from_tensor_slices((X_train, y_train)).shuffle(2200, seed=SEED).batch(50)

for epoch in range(1, 9):
    train_acc.reset_state()
    losses = [float(train_step(x, y)) for x, y in train_ds]
    val_loss, val_acc = evaluate(X_val, y_val)
    print(f"epoch {epoch}: loss {np.mean(losses):.4f} acc {float(train_acc.result()):.3f} | "
          f"val loss {val_loss:.4f} acc {val_acc:.3f}")

test_loss, test_acc = evaluate(X_test, y_test)
print(f"test loss {test_loss:.4f}  test accuracy {test_acc:.3f}")
