import argparse
import logging
import keras
import numpy as np
from keras import layers

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("spectra")


def res_block(x, filters, dilation):
    shortcut = x
    h = layers.Conv1D(filters, 3, padding="same", dilation_rate=dilation, use_bias=False)(x)
    h = layers.BatchNormalization(momentum=0.9)(h)
    h = layers.ReLU()(h)
    h = layers.Conv1D(filters, 3, padding="same", dilation_rate=1, use_bias=False)(x)
    h = layers.BatchNormalization(momentum=0.9)(h)
    h = layers.Add()([shortcut, h])
    return layers.ReLU()(h)


def build_model(length, n_classes, filters):
    inp = keras.Input((length, 1))
    x = layers.Conv1D(filters, 3, padding="same", activation="relu")(inp)
    x = res_block(x, filters, dilation=4)
    x = res_block(x, filters, dilation=8)
    x = layers.GlobalMaxPooling1D()(x)
    x = layers.Dropout(0.1)(x)
    return keras.Model(inp, layers.Dense(n_classes, activation="softmax")(x))


def spectra(n, length, rng):
    """Two peaks per spectrum; the class is their distance, position and height vary."""
    pos = np.arange(length)
    y = rng.integers(0, 4, n)
    gap = np.array([5, 8, 12, 16])[y]
    first = rng.uniform(6, length - 26, n)
    x = np.zeros((n, length))
    for c in (first, first + gap):
        x += rng.uniform(1.0, 1.6, (n, 1)) * np.exp(-((pos - c[:, None]) ** 2) / 3.0)
    x += rng.normal(0, 0.3, (n, length))
    return x.astype("float32")[..., None], y


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--length", type=int, default=80)
    ap.add_argument("--filters", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=7)
    ap.add_argument("--lr", type=float, default=4e-3)
    a = ap.parse_args()

    keras.utils.set_random_seed(10)
    rng = np.random.default_rng(10)
    x_tr, y_tr = spectra(1600, a.length, rng)
    x_va, y_va = spectra(400, a.length, rng)

    model = build_model(a.length, 4, a.filters)
    log.info("parameters: %d", model.count_params())
    model.compile(
        optimizer=keras.optimizers.Adam(a.lr),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    log_cb = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda e, logs: log.info(
            "epoch %d: loss %.4f acc %.4f | val loss %.4f acc %.4f",
            e + 1, logs["loss"], logs["accuracy"], logs["val_loss"], logs["val_accuracy"],
        )
    )
    model.fit(
        x_tr, y_tr, validation_data=(x_va, y_va), epochs=a.epochs, batch_size=32,
        callbacks=[log_cb], verbose=0,
    )
    loss, acc = model.evaluate(x_va, y_va, verbose=0)
    log.info("validation: loss %.4f accuracy %.4f", loss, acc)


if __name__ == "__main__":
    main()
