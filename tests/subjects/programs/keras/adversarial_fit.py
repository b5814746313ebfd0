"""A GAN as a Keras model: two optimizers, one train_step, the losses in the history; sequence data from a generator."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers

LATENT = 4


def make_generator():
    return keras.Sequential(
        [keras.Input((LATENT,)), layers.Dense(12, activation="relu"), layers.Dense(6)], name="generator"
    )


def make_discriminator():
    return keras.Sequential(
        [keras.Input((6,)), layers.Dense(12, activation="relu"), layers.Dense(1)], name="discriminator"
    )


class GAN(keras.Model):
    def __init__(self, discriminator, generator, **kwargs):
        super().__init__(**kwargs)
        self.discriminator, self.generator = discriminator, generator

    def compile(self, d_optimizer, g_optimizer, loss_fn):
        super().compile()
        self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn

    def train_step(self, real):
        batch = tf.shape(real)[0]
        fake = self.generator(tf.random.normal((batch, LATENT)))
        labels = tf.concat([tf.zeros((batch, 1)), tf.ones((batch, 1))], axis=0)
        with tf.GradientTape() as tape:
            d_loss = self.loss_fn(labels, self.discriminator(tf.concat([real, fake], axis=0)))
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(zip(grads, self.discriminator.trainable_weights))
        with tf.GradientTape() as tape:
            made = self.generator(tf.random.normal((batch, LATENT)))
            g_loss = self.loss_fn(tf.zeros((batch, 1)), self.discriminator(made))
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights))
        return {"d_loss": d_loss, "g_loss": g_loss}


class Monitor(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print(f"batch {batch} d_loss {logs['d_loss']:.6f} g_loss {logs['g_loss']:.6f}")


def main():
    keras.utils.set_random_seed(44)
    rng = np.random.default_rng(44)
    waves = np.cos(np.arange(6) + rng.uniform(0, 6, size=(64, 1))).astype("float32")
    data = tf.data.Dataset.from_tensor_slices(waves).shuffle(64, seed=1).batch(16)
    gan = GAN(make_discriminator(), make_generator(), name="gan")
    gan.compile(
        d_optimizer=keras.optimizers.Adam(2e-3),
        g_optimizer=keras.optimizers.Adam(2e-3),
        loss_fn=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    gan.fit(data, epochs=2, verbose=0, callbacks=[Monitor()])
    gan.generator.save_weights("generator.weights.h5")
    print(float(tf.reduce_sum(gan.generator(tf.ones((2, LATENT))))), rng.random())
    raise ValueError("the generator collapsed: its samples are all alike")


if __name__ == "__main__":
    main()
