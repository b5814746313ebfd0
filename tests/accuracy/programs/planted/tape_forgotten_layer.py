"""A GradientTape loop that hands the optimizer the variables of one of two models."""

import tensorflow as tf
from sklearn.datasets import load_digits

tf.keras.utils.set_random_seed(0)
x, y = load_digits(return_X_y=True)
trunk = tf.keras.Sequential([tf.keras.layers.Input((64,)), tf.keras.layers.Dense(32, "relu")])
head = tf.keras.layers.Dense(10)
head.build((None, 32))
optimizer = tf.keras.optimizers.Adam(1e-3)
cross_entropy = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
variables = trunk.trainable_variables + head.trainable_variables
data = tf.data.Dataset.from_tensor_slices(((x / 16).astype("float32"), y)).shuffle(2000, seed=0).batch(64)


@tf.function
def step(inputs, targets):
    with tf.GradientTape() as tape:
        loss = cross_entropy(targets, head(trunk(inputs)))
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, trunk.trainable_variables))
    return loss


for epoch in range(3):
    for inputs, targets in data:
        loss = step(inputs, targets)
    print(epoch, float(loss))
