"""Trains a small convolutional network with a GradientTape loop on striped pictures."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(6)


def pictures(n, rng):
    labels = rng.integers(0, 4, n)
    angle = labels * np.pi / 4
    rows, cols = np.mgrid[0:8, 0:8]
    wave = np.cos(angle)[:, None, None] * cols + np.sin(angle)[:, None, None] * rows
    image = np.sin(1.7 * wave + rng.uniform(0, 6.28, (n, 1, 1))) + rng.normal(0, 0.7, (n, 8, 8))
    return (0.2 * image + 0.5).astype("float32")[..., None], labels


def conv(filters):
    return [
        tf.keras.layers.Conv2D(filters, 3, padding="same", use_bias=False),
        tf.keras.layers.BatchNormalization(momentum=0.9),
        tf.keras.layers.ReLU(),
    ]


model = tf.keras.Sequential(
    [
        tf.keras.Input((8, 8, 1)),
        *conv(8),
        *conv(8),
        tf.keras.layers.MaxPooling2D(),
        *conv(16),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(4),
    ]
)
optimizer = tf.keras.optimizers.SGD(0.05, momentum=0.9)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


rng = np.random.default_rng(6)
x_train, y_train = pictures(800, rng)
x_test, y_test = pictures(300, rng)
data = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(800, seed=6).batch(40)
for epoch in range(5):
    mean = tf.keras.metrics.Mean()
    for x, y in data:
        mean.update_state(train_step(x, y))
    right = np.mean(np.argmax(model(x_test, training=False), axis=1) == y_test)
    print(f"epoch {epoch}: loss {float(mean.result()):.3f} test accuracy {right:.3f}")
