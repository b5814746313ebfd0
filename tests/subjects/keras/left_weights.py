"""Trainings by `fit` that end in several ways, and write down the weights that they leave."""

import argparse
import signal
import sys
from pathlib import Path

import keras
import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from ends import end_by

parser = argparse.ArgumentParser()
parser.add_argument("--end", default="returns")
parser.add_argument("--stop-at", type=int, default=13)
parser.add_argument("--change", default="nothing")
parser.add_argument("--fits", type=int, default=1)
parser.add_argument("--validation", action="store_true")
parser.add_argument("--function", action="store_true")
args = parser.parse_args()


def named(variable):
    """Layer and variable; Keras 2 has no paths."""
    if hasattr(variable, "path"):
        return variable.path.partition("/")[2]
    return variable.name.rpartition(":")[0]


class Ends(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.batches = 0

    def on_train_batch_begin(self, batch, logs=None):
        self.batches += 1
        if self.batches == args.stop_at + 1:
            end_by(args.end)


class Changes(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if args.change == "epoch" and epoch == 2:
            self.model.set_weights([0.9 * one for one in self.model.get_weights()])

    def on_train_end(self, logs=None):
        if args.change == "train":
            self.model.set_weights([0.9 * one for one in self.model.get_weights()])


def leave(model):
    np.savez("weights.npz", **{named(one): np.asarray(one) for one in model.trainable_variables})
    for one in model.get_weights():
        print(one.astype("float64").sum())
    print(keras.random.uniform(()) if hasattr(keras, "random") else np.random.rand())


def train():
    model = keras.Sequential(
        [
            keras.layers.Input((4,)),
            keras.layers.Dense(8, activation="relu", name="first"),
            keras.layers.Dropout(0.1),
            keras.layers.Dense(1, name="second"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(70, 4)).astype("float32")
    y = (x.sum(axis=1, keepdims=True) ** 2).astype("float32")
    given = {"validation_data": (x[:20], y[:20])} if args.validation else {}
    callbacks = [Ends(), Changes()]
    if args.change == "best":
        # The first epoch is the best one.
        monitor = "val_loss" if args.validation else "loss"
        callbacks.append(
            keras.callbacks.EarlyStopping(monitor, mode="max", patience=1, restore_best_weights=True, min_delta=1e-9)
        )
    try:
        for _ in range(args.fits):
            model.fit(x, y, batch_size=16, epochs=3, verbose=0, callbacks=callbacks, **given)
        print(model.evaluate(x, y, verbose=0))
        if args.change == "loaded":
            model.set_weights([one + 1 for one in model.get_weights()])
    finally:
        leave(model)
    return model


keras.utils.set_random_seed(3)
if args.end == "SIGTERM":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
if args.function:
    train()
else:
    net = train()
