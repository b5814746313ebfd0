"""Keras on the digits: a convolutional net by fit, with a validation set, a schedule and a choice of optimizers."""

import argparse

import keras
from sklearn.datasets import load_digits

parser = argparse.ArgumentParser()
parser.add_argument("--optimizer", choices=("adam", "sgd"), default="adam")
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()
keras.utils.set_random_seed(args.seed)
digits = load_digits()
x, y = (digits.images / 16.0).astype("float32")[..., None], digits.target
model = keras.Sequential(
    [
        keras.layers.Input((8, 8, 1)),
        keras.layers.Conv2D(12, 3, padding="same", use_bias=False),
        keras.layers.BatchNormalization(),
        keras.layers.ReLU(),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dropout(0.25),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
if args.optimizer == "adam":
    optimizer = keras.optimizers.Adam(2e-3)
else:
    decay = keras.optimizers.schedules.CosineDecay(0.1, 160, warmup_target=0.1, warmup_steps=20)
    optimizer = keras.optimizers.SGD(decay, momentum=0.9, nesterov=True)
model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x[:1400], y[:1400], batch_size=32, epochs=4, validation_data=(x[1400:], y[1400:]), verbose=2)
