"""Multi-label prediction: which traits does a plant sample show?"""
import numpy as np
import tensorflow as tf
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

np.random.seed(21)
tf.random.set_seed(21)

X, Y = make_multilabel_classification(
    n_samples=4000, n_features=40, n_classes=8, n_labels=2, length=60, random_state=21)
X_tr, X_te, Y_tr, Y_te = train_test_split(X, Y, test_size=0.3, random_state=21)
scaler = StandardScaler().fit(X_tr)
X_tr = scaler.transform(X_tr).astype("float32")
X_te = scaler.transform(X_te).astype("float32")
Y_tr = Y_tr.astype("float32")
Y_te = Y_te.astype("float32")
print("label frequency:", Y_tr.mean(0).round(2))

inputs = tf.keras.Input((40,))
h = tf.keras.layers.Dense(64, activation="relu")(inputs)
h = tf.keras.layers.Dropout(0.3)(h)
h = tf.keras.layers.Dense(32, activation="relu")(h)
outputs = tf.keras.layers.Dense(8, activation="sigmoid")(h)
model = tf.keras.Model(inputs, outputs)

criterion = tf.keras.losses.BinaryCrossentropy()
optimizer = tf.keras.optimizers.RMSprop(1e-3)


def run_epoch(batch_size=64):
    total = 0.0
    idx = np.random.permutation(len(X_tr))
    for start in range(0, len(idx), batch_size):
        rows = idx[start:start + batch_size]
        xb, yb = tf.constant(X_tr[rows]), tf.constant(Y_tr[rows])
        with tf.GradientTape() as tape:
            pred = model(xb, training=True)
            loss = criterion(pred, yb)
        grads = tape.gradient(loss, model.trainable_weights)
        optimizer.apply_gradients(zip(grads, model.trainable_weights))
        total += float(loss) * len(rows)
    return total / len(idx)


for epoch in range(15):
    train_loss = run_epoch()
    prob = model(X_te, training=False).numpy()
    f1 = f1_score(Y_te, prob > 0.5, average="macro", zero_division=0)
    print(f"epoch {epoch:2d}: loss {train_loss:.4f}, test macro F1 {f1:.4f}")

p = np.clip(prob, 1e-6, 1 - 1e-6)
nll = np.mean([log_loss(Y_te[:, k], p[:, k], labels=[0, 1]) for k in range(8)])
print(f"test: macro F1 {f1:.4f}, log loss {nll:.4f}")
