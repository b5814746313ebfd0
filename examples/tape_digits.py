"""Train a small classifier on scikit-learn's 8x8 digits with a GradientTape in a tf.function."""

import argparse

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    tf.keras.utils.set_random_seed(args.seed)
    digits = load_digits()
    images = (digits.images[..., np.newaxis] / 16.0).astype("float32")
    train_x, test_x, train_y, test_y = train_test_split(images, digits.target, test_size=0.25, random_state=args.seed)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(16, 3, padding="same", activation="relu", name="conv1"),
            tf.keras.layers.MaxPooling2D(name="pool"),
            tf.keras.layers.Flatten(name="flatten"),
            tf.keras.layers.Dense(64, activation="relu", name="fc1"),
            tf.keras.layers.Dense(10, name="fc2"),
        ]
    )
    model.build((None, 8, 8, 1))
    optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
    cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = cross_entropy(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    batches = tf.data.Dataset.from_tensor_slices((train_x, train_y)).shuffle(len(train_x), args.seed).batch(32)
    for epoch in range(1, args.epochs + 1):
        losses = [train_step(x, y).numpy() for x, y in batches]
        right = np.argmax(model(test_x, training=False), axis=1) == test_y
        print(f"epoch {epoch}  train loss {np.mean(losses):.4f}  accuracy {right.mean():.3f}")


if __name__ == "__main__":
    main()
