"""Metric learning on handwritten digits: embedding network trained on triplets."""
import numpy as np
import keras
from keras import layers, ops
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

keras.utils.set_random_seed(9)
rng = np.random.default_rng(9)
MARGIN = 0.5


def make_triplets(x, y, n):
    """anchor, another picture of the same digit, picture of a different digit"""
    by_class = [np.flatnonzero(y == c) for c in range(10)]
    anchors, positives, negatives = [], [], []
    for _ in range(n):
        a, b = rng.choice(10, 2, replace=False)
        i, j = rng.choice(by_class[a], 2)
        anchors.append(i)
        positives.append(j)
        negatives.append(rng.choice(by_class[b]))
    return [x[anchors], x[positives], x[negatives]]


def distance(u, v):
    sum_square = ops.sum(ops.square(u - v), axis=1, keepdims=True)
    return ops.sqrt(sum_square)


def distances(vectors):
    anchor, positive, negative = vectors
    return ops.concatenate([distance(anchor, positive), distance(anchor, negative)], axis=1)


def triplet_loss(y_true, y_pred):
    return ops.mean(ops.maximum(y_pred[:, 0] - y_pred[:, 1] + MARGIN, 0.0))


def ranking_accuracy(y_true, y_pred):
    return ops.mean(ops.cast(y_pred[:, 0] < y_pred[:, 1], "float32"))


digits = load_digits()
X = (digits.data / 16.0).astype("float32")
X_train, X_test, y_train, y_test = train_test_split(X, digits.target, test_size=0.3, random_state=9,
                                                    stratify=digits.target)
X_train, X_val, y_train, y_val = train_test_split(X_train, y_train, test_size=0.15, random_state=9,
                                                  stratify=y_train)
train = make_triplets(X_train, y_train, 8000)
val = make_triplets(X_val, y_val, 1000)

embedding = keras.Sequential([
    keras.Input((64,)),
    layers.Dense(64, activation="relu"),
    layers.Dense(32, activation="relu"),
    layers.Dense(8),
], name="embedding")

inputs = [keras.Input((64,), name=n) for n in ("anchor", "positive", "negative")]
output = layers.Lambda(distances, output_shape=(2,))([embedding(i) for i in inputs])
model = keras.Model(inputs, output)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=triplet_loss, metrics=[ranking_accuracy])

dummy = lambda t: np.zeros((len(t[0]), 2), "float32")
model.fit(train, dummy(train), batch_size=64, epochs=10, validation_data=(val, dummy(val)), verbose=2)

test = make_triplets(X_test, y_test, 2000)
d = model.predict(test, verbose=0)
print("mean distance: same digit %.3f, different digit %.3f" % tuple(d.mean(axis=0)))
print("ranking accuracy on test triplets: %.3f" % np.mean(d[:, 0] < d[:, 1]))

e_train, e_test = embedding.predict(X_train, verbose=0), embedding.predict(X_test, verbose=0)
if np.isfinite(e_train).all():
    knn = KNeighborsClassifier(5).fit(e_train, y_train)
    print("5-NN accuracy in embedding space: %.3f" % knn.score(e_test, y_test))
