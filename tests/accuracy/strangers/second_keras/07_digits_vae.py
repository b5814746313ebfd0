"""Variational autoencoder on 8x8 digits (adapted from the Keras VAE example)."""
import numpy as np
import tensorflow as tf
import keras
from keras import layers
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(5)
LATENT_DIM = 6


class Sampling(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs):
        z_mean, z_log_var = inputs
        eps = keras.random.normal(keras.ops.shape(z_mean), seed=self.seed_generator)
        return z_mean + keras.ops.exp(0.5 * z_log_var) * eps


enc_in = keras.Input((8, 8, 1))
x = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(enc_in)
x = layers.Flatten()(x)
x = layers.Dense(64, activation="relu")(x)
z_mean = layers.Dense(LATENT_DIM, name="z_mean")(x)
z_log_var = layers.Dense(LATENT_DIM, name="z_log_var")(x)
encoder = keras.Model(enc_in, [z_mean, z_log_var, Sampling()([z_mean, z_log_var])], name="encoder")

dec_in = keras.Input((LATENT_DIM,))
x = layers.Dense(64, activation="relu")(dec_in)
x = layers.Dense(4 * 4 * 32, activation="relu")(x)
x = layers.Reshape((4, 4, 32))(x)
x = layers.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu")(x)
decoder = keras.Model(dec_in, layers.Conv2D(1, 3, padding="same", activation="sigmoid")(x), name="decoder")


class VAE(keras.Model):
    def __init__(self, encoder, decoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder, self.decoder = encoder, decoder
        self.trackers = [keras.metrics.Mean(name=n) for n in ("loss", "reconstruction", "kl")]

    @property
    def metrics(self):
        return self.trackers

    def vae_losses(self, images, training):
        z_mean, z_log_var, z = self.encoder(images, training=training)
        recon = self.decoder(z, training=training)
        bce = keras.losses.binary_crossentropy(images, recon)
        recon_loss = tf.reduce_mean(bce)
        kl = -0.5 * (1 + z_log_var - tf.square(z_mean) - tf.exp(z_log_var))
        kl_loss = tf.reduce_mean(tf.reduce_sum(kl, axis=1))
        return recon_loss + kl_loss, recon_loss, kl_loss

    def train_step(self, images):
        with tf.GradientTape() as tape:
            values = self.vae_losses(images, training=True)
        grads = tape.gradient(values[0], self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        for t, v in zip(self.trackers, values):
            t.update_state(v)
        return {t.name: t.result() for t in self.trackers}

    def test_step(self, images):
        for t, v in zip(self.trackers, self.vae_losses(images, training=False)):
            t.update_state(v)
        return {t.name: t.result() for t in self.trackers}


digits = load_digits()
images = (digits.images / 16.0).astype("float32")[..., None]
x_train, x_test, y_train, y_test = train_test_split(images, digits.target, test_size=0.2, random_state=5)

vae = VAE(encoder, decoder)
vae.compile(optimizer=keras.optimizers.Adam(1e-3))
history = vae.fit(x_train, epochs=60, batch_size=64, verbose=0)
for name, values in history.history.items():
    print(f"{name:>15}: first {values[0]:.4f}  last {values[-1]:.4f}")

print("test:", {k: round(v, 4) for k, v in vae.evaluate(x_test, return_dict=True, verbose=0).items()})

z_train = encoder.predict(x_train, verbose=0)[0]
z_test = encoder.predict(x_test, verbose=0)[0]
recon = decoder.predict(z_test, verbose=0)
print("test reconstruction MSE: %.4f (image variance %.4f)" % (np.mean((recon - x_test) ** 2),
                                                              np.mean((x_test - x_train.mean(0)) ** 2)))
probe = LogisticRegression(max_iter=2000).fit(z_train, y_train)
print("linear probe on latent codes: %.3f" % probe.score(z_test, y_test))
