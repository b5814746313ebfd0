"""Trains a small network with Keras on scikit-learn's handwritten digits. Knows nothing of smd_agent."""

import argparse

import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=3)
epochs = parser.parse_args().epochs

tf.keras.utils.set_random_seed(0)
digits = load_digits()
images = (digits.images / 16.0).astype("float32")[..., None]
train_x, test_x, train_y, test_y = train_test_split(images, digits.target, test_size=0.25, random_state=0)

layers = tf.keras.layers
model = tf.keras.Sequential(
    [
        layers.Input((8, 8, 1)),
        layers.Conv2D(16, 3, activation="relu", name="conv1"),
        layers.Flatten(name="flatten"),
        layers.Dropout(0.2, name="dropout"),
        layers.Dense(10, name="fc1"),
    ]
)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.Adam(0.005), loss, metrics=["accuracy"])
model.fit(train_x, train_y, batch_size=64, epochs=epochs, validation_data=(test_x, test_y), verbose=2)
print(f"test accuracy {model.evaluate(test_x, test_y, verbose=0)[1]:.3f}")
