"""Keras and TensorFlow scripts run by ``verify``."""

from __future__ import annotations

import pytest
from harness.verified import assert_equal, verify

pytest.importorskip("tensorflow")
pytestmark = pytest.mark.cold

# fit, executions of several steps, single batches, and tapes, compiled and not.
SCRIPT = """
import numpy as np, tensorflow as tf
tf.keras.utils.set_random_seed(1)
layers = tf.keras.layers
model = tf.keras.Sequential([layers.Input((3,)), layers.Dense(4), layers.BatchNormalization(),
    layers.Dropout(0.5), layers.Dense(1)])
x, y = np.random.rand(12, 3).astype("float32"), np.random.rand(12, 1).astype("float32")
model.compile("sgd", "mse")
model.fit(x, y, batch_size=4, epochs=2, verbose=0, validation_data=(x, y))
model.compile("adam", "mse", steps_per_execution=2)
model.fit(x, y, batch_size=4, epochs=1, verbose=0)
model.compile("sgd", "mse")
model.train_on_batch(x, y)
optimizer = tf.keras.optimizers.Adam()
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss
step(x, y)
compiled = tf.function(step)
for _ in range(2):
    compiled(x, y)
print(model.predict(x, verbose=0).sum(), flush=True)
"""


def test_fit_batches_and_tapes_are_compared(runner):
    found = verify(runner, "--every", "1", runner.write(SCRIPT), TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    # 6 batches, 2 executions, 1 batch, 1 eager step and 2 compiled ones.
    told = found[1]
    assert_equal(found, steps=6 + 2 + 1 + 1 + 2, losses=told["losses"], weights=told["weights"])
    assert told["losses"] >= 12
    assert told["weights"] >= 12 * 4
    # Mean and variance of the one, and the state of the other's random numbers.
    assert told["buffers"] >= 12 * 2
    assert told["random"]["TensorFlow"] == "the same"
