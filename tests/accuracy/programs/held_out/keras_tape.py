"""Custom GradientTape loop: regularised digit classifier in Keras 3."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(8)


def datasets():
    d = load_digits()
    xa, xb, ya, yb = train_test_split(
        d.data.astype("float32"),
        d.target.astype("int32"),
        train_size=300,
        test_size=600,
        random_state=6,
        stratify=d.target,
    )
    train = tf.data.Dataset.from_tensor_slices((xa, ya)).shuffle(300, seed=1).batch(30)
    test = tf.data.Dataset.from_tensor_slices((xb, yb)).batch(200)
    return train, test


def build():
    return keras.Sequential(
        [
            keras.Input((64,)),
            layers.BatchNormalization(),
            layers.Dense(128, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.5),
            layers.Dense(128, activation="relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.5),
            layers.Dense(10),
        ]
    )


model = build()
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.SGD(0.05)
train_acc = keras.metrics.SparseCategoricalAccuracy()
test_acc = keras.metrics.SparseCategoricalAccuracy()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x)
        loss = loss_fn(y, logits)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    train_acc.update_state(y, logits)
    return loss


@tf.function
def test_step(x, y):
    logits = model(x, training=False)
    test_acc.update_state(y, logits)
    return loss_fn(y, logits)


def main():
    train, test = datasets()
    for epoch in range(20):
        train_acc.reset_state()
        test_acc.reset_state()
        losses = [float(train_step(x, y)) for x, y in train]
        val = [float(test_step(x, y)) for x, y in test]
        print(
            f"epoch {epoch + 1:2d}: loss {sum(losses) / len(losses):.4f}"
            f" acc {float(train_acc.result()):.3f}"
            f" | val loss {sum(val) / len(val):.4f} acc {float(test_acc.result()):.3f}"
        )


if __name__ == "__main__":
    main()
