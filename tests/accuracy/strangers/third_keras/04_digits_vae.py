"""Variational autoencoder on the 8x8 digits."""
import numpy as np
import tensorflow as tf
import keras
from keras import layers, ops
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(21)
LATENT = 6

x = (load_digits().images / 16.0).astype("float32")[..., None]
x_train, x_test = train_test_split(x, test_size=0.2, random_state=21)


class Sampling(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs):
        z_mean, z_log_var = inputs
        eps = keras.random.normal(ops.shape(z_mean), seed=self.seed_generator)
        return z_mean + ops.exp(0.5 * z_log_var) * eps


enc_in = keras.Input((8, 8, 1))
h = layers.Conv2D(16, 3, activation="relu", padding="same", strides=2)(enc_in)
h = layers.Flatten()(h)
h = layers.Dense(64, activation="relu")(h)
z_mean = layers.Dense(LATENT, name="z_mean")(h)
z_log_var = layers.Dense(LATENT, name="z_log_var")(h)
z = Sampling()([z_mean, z_log_var])
encoder = keras.Model(enc_in, [z_mean, z_log_var, z], name="encoder")

dec_in = keras.Input((LATENT,))
h = layers.Dense(64, activation="relu")(dec_in)
h = layers.Dense(4 * 4 * 16, activation="relu")(h)
h = layers.Reshape((4, 4, 16))(h)
h = layers.Conv2DTranspose(16, 3, strides=2, padding="same", activation="relu")(h)
dec_out = layers.Conv2D(1, 3, padding="same", activation="sigmoid")(h)
decoder = keras.Model(dec_in, dec_out, name="decoder")


class VAE(keras.Model):
    def __init__(self, encoder, decoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder, self.decoder = encoder, decoder
        self.total_tracker = keras.metrics.Mean(name="loss")
        self.rec_tracker = keras.metrics.Mean(name="reconstruction")
        self.kl_tracker = keras.metrics.Mean(name="kl")

    @property
    def metrics(self):
        return [self.total_tracker, self.rec_tracker, self.kl_tracker]

    def train_step(self, data):
        with tf.GradientTape() as tape:
            z_mean, z_log_var, z = self.encoder(data, training=True)
            rec = self.decoder(z, training=True)
            rec_loss = ops.mean(keras.losses.binary_crossentropy(data, rec))
            kl = -0.5 * (1 + z_log_var - ops.square(z_mean) - ops.exp(z_log_var))
            kl_loss = ops.mean(ops.sum(kl, axis=1))
            total = rec_loss + kl_loss
        grads = tape.gradient(total, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        self.total_tracker.update_state(total)
        self.rec_tracker.update_state(rec_loss)
        self.kl_tracker.update_state(kl_loss)
        return {m.name: m.result() for m in self.metrics}


vae = VAE(encoder, decoder)
vae.compile(optimizer=keras.optimizers.Adam(2e-3))
vae.fit(x_train, epochs=40, batch_size=64, verbose=2)

mu, _, _ = encoder.predict(x_test, verbose=0)
rec = decoder.predict(mu, verbose=0)
print("test reconstruction MSE : %.5f" % np.mean((rec - x_test) ** 2))
print("pixel variance          : %.5f" % np.mean((x_test - x_train.mean(0)) ** 2))
print("std of latent means     :", np.round(mu.std(0), 3))
