"""A GradientTape loop: an autoencoder of the digits, gradients clipped, compiled or eager."""

import sys

import tensorflow as tf
from sklearn.datasets import load_digits

tf.keras.utils.set_random_seed(0)
x = (load_digits().data / 16.0).astype("float32")
encoder = tf.keras.Sequential(
    [tf.keras.layers.Input((64,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(8)]
)
decoder = tf.keras.Sequential(
    [tf.keras.layers.Input((8,)), tf.keras.layers.Dense(32, "relu"), tf.keras.layers.Dense(64)]
)
optimizer = tf.keras.optimizers.Adam(3e-3)
variables = encoder.trainable_variables + decoder.trainable_variables


def step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(decoder(encoder(batch)) - batch))
    gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 1.0)
    optimizer.apply_gradients(zip(gradients, variables))
    return loss


if "eager" not in sys.argv:
    step = tf.function(step)
data = tf.data.Dataset.from_tensor_slices(x).shuffle(1797, seed=0).batch(64, drop_remainder=True)
for epoch in range(3):
    for batch in data:
        loss = step(batch)
    print(epoch, float(loss))
