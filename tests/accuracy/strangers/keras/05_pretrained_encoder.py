"""Pretrain a signal autoencoder on unlabelled data, classify with few labels."""
import logging

import keras
import numpy as np
from keras import layers

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
log = logging.getLogger("signals")

LENGTH = 64
CLASSES = 4
LATENT = 8


def signals(n, rng):
    t = np.linspace(0, 1, LENGTH)
    y = rng.integers(0, CLASSES, n)
    phase = rng.uniform(0, 2 * np.pi, (n, 1))
    base = np.sin(2 * np.pi * 2 * t + phase)
    centre = rng.uniform(0.25, 0.75, (n, 1))
    bump = np.exp(-((t - centre) ** 2) / 0.004)
    shapes = np.stack([bump, -bump, bump * np.sin(40 * (t - centre)), 0 * bump], 1)
    x = base + 2.0 * shapes[np.arange(n), y] + rng.normal(0, 0.2, (n, LENGTH))
    return x.astype("float32")[..., None], y


def make_encoder():
    inp = keras.Input((LENGTH, 1))
    x = layers.Conv1D(16, 7, strides=2, padding="same", activation="relu")(inp)
    x = layers.Conv1D(16, 5, strides=2, padding="same", activation="relu")(x)
    x = layers.Flatten()(x)
    x = layers.Dense(LATENT)(x)
    return keras.Model(inp, x, name="encoder")


def make_autoencoder(encoder):
    inp = keras.Input((LENGTH, 1))
    x = encoder(inp)
    x = layers.Dense(64, activation="relu")(x)
    x = layers.Dense(LENGTH)(x)
    x = layers.Reshape((LENGTH, 1))(x)
    return keras.Model(inp, x, name="autoencoder")


def make_classifier(encoder):
    features = keras.models.clone_model(encoder)
    features.trainable = False
    inp = keras.Input((LENGTH, 1))
    x = features(inp)
    x = layers.Dense(32, activation="relu")(x)
    out = layers.Dense(CLASSES, activation="softmax")(x)
    return keras.Model(inp, out, name="classifier")


def main():
    keras.utils.set_random_seed(99)
    rng = np.random.default_rng(99)
    x_unlab, _ = signals(3000, rng)
    x_few, y_few = signals(300, rng)
    x_test, y_test = signals(800, rng)

    encoder = make_encoder()
    ae = make_autoencoder(encoder)
    ae.compile(optimizer=keras.optimizers.Adam(2e-3), loss="mse")
    h = ae.fit(x_unlab, x_unlab, epochs=10, batch_size=64, verbose=0)
    log.info("reconstruction mse %.4f -> %.4f", h.history["loss"][0], h.history["loss"][-1])

    clf = make_classifier(encoder)
    clf.compile(
        optimizer=keras.optimizers.Adam(3e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    h = clf.fit(
        x_few, y_few, epochs=20, batch_size=16, validation_data=(x_test, y_test), verbose=0
    )
    for e in range(0, 20, 4):
        log.info("epoch %d loss %.3f val_acc %.3f", e, h.history["loss"][e], h.history["val_accuracy"][e])
    loss, acc = clf.evaluate(x_test, y_test, verbose=0)
    log.info("test loss %.4f accuracy %.4f", loss, acc)


if __name__ == "__main__":
    main()
