"""A functional model with two outputs, trained by fit with the usual callbacks: checkpoint, schedule, stop, log."""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf


def make_data(n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 8)).astype("float32")
    return x, {"kind": (x[:, 0] > x[:, 1]).astype("int32"), "amount": x[:, 2:3] * 2 + x[:, 3:4]}


def build():
    inputs = tf.keras.Input((8,), name="features")
    hidden = tf.keras.layers.Dense(16, activation="relu", name="hidden")(inputs)
    hidden = tf.keras.layers.Dropout(0.1, name="dropout")(hidden)
    kind = tf.keras.layers.Dense(2, activation="softmax", name="kind")(hidden)
    amount = tf.keras.layers.Dense(1, name="amount")(hidden)
    return tf.keras.Model(inputs, {"kind": kind, "amount": amount}, name="two_heads")


class PrintLosses(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch}:", " ".join(f"{name}={logs[name]:.5f}" for name in sorted(logs) if "loss" in name))


def schedule(epoch, lr):
    return lr if epoch < 2 else lr * 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    tf.keras.utils.set_random_seed(2)
    model = build()
    model.compile(
        optimizer=tf.keras.optimizers.Adam(0.01),
        loss={"kind": "sparse_categorical_crossentropy", "amount": "mse"},
        loss_weights={"kind": 1.0, "amount": 0.5},
        metrics={"kind": ["accuracy"]},
    )
    history = model.fit(
        *make_data(160, 0),
        validation_data=make_data(64, 1),
        epochs=args.epochs,
        batch_size=args.batch_size,
        verbose=0,
        callbacks=[
            tf.keras.callbacks.ModelCheckpoint("best.weights.h5", save_best_only=True, save_weights_only=True),
            tf.keras.callbacks.LearningRateScheduler(schedule),
            tf.keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True),
            tf.keras.callbacks.CSVLogger("log.csv"),
            PrintLosses(),
        ],
    )
    print({name: round(values[-1], 5) for name, values in sorted(history.history.items())})
    predicted = model.predict(make_data(8, 2)[0], verbose=0)
    print(predicted["amount"].ravel().tolist())
    np.savez("weights.npz", *model.get_weights())
    print(float(tf.random.uniform(())), np.random.rand())


if __name__ == "__main__":
    main()
