"""An autoencoder whose train_step and test_step are its own, with trackers of its losses and a noise layer."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow import keras

layers = keras.layers


class DenoisingAutoencoder(keras.Model):
    def __init__(self, features, code, **kwargs):
        super().__init__(**kwargs)
        self.encoder = keras.Sequential([keras.Input((features,)), layers.Dense(code, activation="tanh", name="code")])
        self.decoder = keras.Sequential([keras.Input((code,)), layers.Dense(features, name="decoded")])
        self.total_tracker = keras.metrics.Mean(name="total_loss")
        self.sparsity_tracker = keras.metrics.Mean(name="sparsity_loss")

    @property
    def metrics(self):
        return [self.total_tracker, self.sparsity_tracker]

    def call(self, inputs):
        return self.decoder(self.encoder(inputs))

    def compute_losses(self, noisy, clean):
        code = self.encoder(noisy)
        reconstruction = tf.reduce_mean(tf.square(self.decoder(code) - clean))
        return reconstruction, tf.reduce_mean(tf.abs(code))

    def train_step(self, data):
        noisy, clean = data
        with tf.GradientTape() as tape:
            reconstruction, sparsity = self.compute_losses(noisy, clean)
            total = reconstruction + 0.1 * sparsity
        gradients = tape.gradient(total, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.total_tracker.update_state(total)
        self.sparsity_tracker.update_state(sparsity)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        reconstruction, sparsity = self.compute_losses(*data)
        self.total_tracker.update_state(reconstruction + 0.1 * sparsity)
        self.sparsity_tracker.update_state(sparsity)
        return {m.name: m.result() for m in self.metrics}


def dataset(n, seed, batch):
    rng = np.random.default_rng(seed)
    clean = np.sin(np.linspace(0, 6, 12) + rng.uniform(0, 6, size=(n, 1))).astype("float32")
    noisy = clean + 0.2 * rng.normal(size=clean.shape).astype("float32")
    return tf.data.Dataset.from_tensor_slices((noisy, clean)).batch(batch)


def main():
    keras.utils.set_random_seed(10)
    model = DenoisingAutoencoder(12, 4, name="denoiser")
    model.compile(optimizer=keras.optimizers.SGD(0.2, momentum=0.9))
    history = model.fit(dataset(96, 0, 16), epochs=3, verbose=0)
    for epoch, value in enumerate(history.history["total_loss"]):
        print(f"epoch {epoch} total loss {value:.6f}")
    results = model.evaluate(dataset(32, 1, 16), verbose=0, return_dict=True)
    print({name: round(float(value), 6) for name, value in results.items()})
    np.save("decoder.npy", model.decoder.get_weights()[0])
    print(float(tf.random.normal(())))
    sys.exit(0 if results["total_loss"] < 0.05 else 9)


main()
