import numpy as np
import tensorflow as tf
import keras
from keras import layers
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)

DIM = 64
LATENT = 4


class Sampling(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(13)

    def call(self, inputs):
        mean, log_var = inputs
        eps = keras.random.normal(keras.ops.shape(mean), seed=self.seed_generator)
        return mean + keras.ops.exp(0.5 * log_var) * eps


class VAE(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        x_in = keras.Input((DIM,))
        h = layers.Dense(64, activation="relu")(x_in)
        mean = layers.Dense(LATENT, name="z_mean")(h)
        log_var = layers.Dense(LATENT, name="z_log_var")(h)
        z = Sampling()([mean, log_var])
        self.encoder = keras.Model(x_in, [mean, log_var, z], name="encoder")

        z_in = keras.Input((LATENT,))
        h = layers.Dense(64, activation="relu")(z_in)
        x_out = layers.Dense(DIM, activation="sigmoid")(h)
        self.decoder = keras.Model(z_in, x_out, name="decoder")

        self.total_tracker = keras.metrics.Mean(name="loss")
        self.recon_tracker = keras.metrics.Mean(name="recon")
        self.kl_tracker = keras.metrics.Mean(name="kl")

    @property
    def metrics(self):
        return [self.total_tracker, self.recon_tracker, self.kl_tracker]

    def call(self, x):
        return self.decoder(self.encoder(x)[0])

    def train_step(self, data):
        x = data
        with tf.GradientTape() as tape:
            mean, log_var, z = self.encoder(x, training=True)
            x_hat = self.decoder(z, training=True)
            recon = tf.reduce_mean(keras.losses.binary_crossentropy(x, x_hat))
            kl = -0.5 * (1 + log_var - tf.square(mean) - tf.exp(log_var))
            kl = tf.reduce_mean(tf.reduce_sum(kl, axis=1))
            loss = recon + kl
        grads = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        self.total_tracker.update_state(loss)
        self.recon_tracker.update_state(recon)
        self.kl_tracker.update_state(kl)
        return {m.name: m.result() for m in self.metrics}


x = (load_digits().data / 16.0).astype("float32")
perm = np.random.default_rng(0).permutation(len(x))
x_train, x_test = x[perm[:1500]], x[perm[1500:]]

vae = VAE()
vae.compile(optimizer=keras.optimizers.Adam(3e-3))
vae.fit(x_train, epochs=25, batch_size=64, verbose=2)

x_rec = vae.predict(x_test, verbose=0)
mean, log_var, _ = vae.encoder.predict(x_test, verbose=0)
print("std of latent means:", mean.std(axis=0).round(3))
print("test reconstruction mse: %.5f" % np.mean((x_test - x_rec) ** 2))
print("mse of the mean image:   %.5f" % np.mean((x_test - x_train.mean(0)) ** 2))
