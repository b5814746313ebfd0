"""A GAN that overrides train_step: three updates of the critic with a gradient penalty, then one of the generator."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(1)


class WGAN(keras.Model):
    def __init__(self, discriminator, generator, latent_dim, discriminator_extra_steps=3, gp_weight=1.0):
        super().__init__()
        self.discriminator, self.generator, self.latent_dim = discriminator, generator, latent_dim
        self.d_steps, self.gp_weight = discriminator_extra_steps, gp_weight

    def compile(self, d_optimizer, g_optimizer, d_loss_fn, g_loss_fn, **kwargs):
        super().compile(**kwargs)
        self.d_optimizer, self.g_optimizer = d_optimizer, g_optimizer
        self.d_loss_fn, self.g_loss_fn = d_loss_fn, g_loss_fn

    def call(self, z):
        return self.generator(z)

    def gradient_penalty(self, batch_size, real, fake):
        alpha = tf.random.uniform([batch_size, 1])
        interpolated = real + alpha * (fake - real)
        with tf.GradientTape() as gp_tape:
            gp_tape.watch(interpolated)
            pred = self.discriminator(interpolated, training=True)
        grads = gp_tape.gradient(pred, [interpolated])[0]
        norm = tf.sqrt(tf.reduce_sum(tf.square(grads), axis=1) + 1e-12)
        return tf.reduce_mean((norm - 1.0) ** 2)

    def train_step(self, real):
        batch_size = tf.shape(real)[0]
        for _ in range(self.d_steps):
            noise = tf.random.normal((batch_size, self.latent_dim))
            with tf.GradientTape() as tape:
                fake = self.generator(noise, training=True)
                fake_logits = self.discriminator(fake, training=True)
                real_logits = self.discriminator(real, training=True)
                d_cost = self.d_loss_fn(real_logits, fake_logits)
                d_loss = d_cost + self.gp_weight * self.gradient_penalty(batch_size, real, fake)
            d_gradient = tape.gradient(d_loss, self.discriminator.trainable_variables)
            self.d_optimizer.apply_gradients(zip(d_gradient, self.discriminator.trainable_variables))
        noise = tf.random.normal((batch_size, self.latent_dim))
        with tf.GradientTape() as tape:
            g_loss = self.g_loss_fn(self.discriminator(self.generator(noise, training=True), training=True))
        gen_gradient = tape.gradient(g_loss, self.generator.trainable_variables)
        self.g_optimizer.apply_gradients(zip(gen_gradient, self.generator.trainable_variables))
        return {"d_loss": d_loss, "g_loss": g_loss}


class Watch(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print(f"batch {batch} d_loss {float(logs['d_loss']):.6f} g_loss {float(logs['g_loss']):.6f}")

    def on_epoch_end(self, epoch, logs=None):
        self.model.generator.save_weights(f"generator_{epoch}.weights.h5")


generator = keras.Sequential(
    [keras.Input((4,)), layers.Dense(16, activation="relu"), layers.Dense(2)], name="generator"
)
discriminator = keras.Sequential(
    [keras.Input((2,)), layers.Dense(16), layers.LeakyReLU(), layers.Dense(1)], name="discriminator"
)
angle = np.random.uniform(0, 2 * np.pi, 96)
points = np.stack([np.cos(angle), np.sin(angle)], 1).astype("float32")
wgan = WGAN(discriminator, generator, latent_dim=4)
wgan.compile(
    d_optimizer=keras.optimizers.Adam(1e-3, beta_1=0.5, beta_2=0.9),
    g_optimizer=keras.optimizers.Adam(1e-3, beta_1=0.5, beta_2=0.9),
    d_loss_fn=lambda real, fake: tf.reduce_mean(fake) - tf.reduce_mean(real),
    g_loss_fn=lambda fake: -tf.reduce_mean(fake),
)
wgan.fit(points, batch_size=24, epochs=2, callbacks=[Watch()], verbose=0, shuffle=True)
print(np.random.rand(), tf.random.uniform((1,)).numpy().tolist())
