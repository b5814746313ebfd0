"""Siamese network with contrastive loss on the 8x8 digits."""
import numpy as np
import keras
from keras import layers, ops
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

MARGIN = 1.0


def contrastive_loss(y_true, dist):
    y_true = ops.cast(y_true, dist.dtype)
    near = (1.0 - y_true) * ops.square(dist)
    far = y_true * ops.square(ops.maximum(MARGIN - dist, 0.0))
    return ops.mean(near + far, axis=-1)


def make_pairs(x, y, n_pairs, rng):
    by_class = [np.flatnonzero(y == c) for c in range(10)]
    left, right, same = [], [], []
    for k in range(n_pairs):
        i = rng.integers(len(x))
        if k % 2 == 0:
            j = rng.choice(by_class[y[i]])
        else:
            other = rng.choice([c for c in range(10) if c != y[i]])
            j = rng.choice(by_class[other])
        left.append(x[i])
        right.append(x[j])
        same.append(float(y[i] == y[j]))
    return [np.stack(left), np.stack(right)], np.array(same, "float32")[:, None]


def embedding_net():
    inp = keras.Input((8, 8, 1))
    h = layers.Conv2D(16, 3, padding="same", activation="relu")(inp)
    h = layers.MaxPooling2D()(h)
    h = layers.Conv2D(32, 3, padding="same", activation="relu")(h)
    h = layers.Flatten()(h)
    h = layers.Dense(32, activation="relu")(h)
    return keras.Model(inp, layers.Dense(8)(h), name="embedding")


def distance(pair):
    a, b = pair
    sq = ops.sum(ops.square(a - b), axis=1, keepdims=True)
    return ops.sqrt(ops.maximum(sq, 1e-6))


if __name__ == "__main__":
    keras.utils.set_random_seed(9)
    rng = np.random.default_rng(9)
    d = load_digits()
    x = (d.images / 16.0).astype("float32")[..., None]
    x_tr, x_te, y_tr, y_te = train_test_split(x, d.target, test_size=0.3, stratify=d.target, random_state=9)
    pairs_tr, same_tr = make_pairs(x_tr, y_tr, 5000, rng)
    pairs_te, same_te = make_pairs(x_te, y_te, 1000, rng)

    net = embedding_net()
    a, b = keras.Input((8, 8, 1)), keras.Input((8, 8, 1))
    dist = layers.Lambda(distance, output_shape=(1,))([net(a), net(b)])
    siamese = keras.Model([a, b], dist)
    siamese.compile(optimizer=keras.optimizers.Adam(1e-3), loss=contrastive_loss)
    siamese.fit(
        pairs_tr, same_tr, validation_data=(pairs_te, same_te), batch_size=64, epochs=6, verbose=2
    )

    dd = siamese.predict(pairs_te, verbose=0)
    print("mean distance: same %.3f, different %.3f" % (dd[same_te == 1].mean(), dd[same_te == 0].mean()))
    print("pair accuracy: %.4f" % np.mean((dd < MARGIN / 2) == (same_te == 1)))
    knn = KNeighborsClassifier(5).fit(net.predict(x_tr, verbose=0), y_tr)
    print("5-NN accuracy in the embedding: %.4f" % knn.score(net.predict(x_te, verbose=0), y_te))
