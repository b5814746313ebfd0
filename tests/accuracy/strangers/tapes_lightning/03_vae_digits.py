import tensorflow as tf
import numpy as np
from sklearn.datasets import load_digits
from tensorflow import keras

keras.utils.set_random_seed(42)

LATENT = 6
BATCH_SIZE = 64
EPOCHS = 30

images = (load_digits().data / 16.0).astype(np.float32)
perm = np.random.permutation(len(images))
train_x, test_x = images[perm[:1500]], images[perm[1500:]]


class Encoder(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(96, activation="relu")
        self.mu = keras.layers.Dense(LATENT)
        self.log_var = keras.layers.Dense(LATENT)

    def call(self, x):
        h = self.hidden(x)
        return self.mu(h), self.log_var(h)


class Decoder(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(96, activation="relu")
        self.logits = keras.layers.Dense(64)

    def call(self, z):
        return self.logits(self.hidden(z))


class VAE(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.decoder = Decoder()

    def call(self, x):
        mu, log_var = self.encoder(x)
        eps = tf.random.normal(tf.shape(mu))
        z = mu + tf.exp(0.5 * log_var) * eps
        return self.decoder(z), mu, log_var


vae = VAE()
opt = keras.optimizers.Adam(2e-3)


def vae_loss(x, logits, mu, log_var):
    ce = tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits)
    recon = tf.reduce_mean(ce)
    kl = -0.5 * tf.reduce_sum(1.0 + log_var - tf.square(mu) - tf.exp(log_var), axis=1)
    kl = tf.reduce_mean(kl)
    return recon + kl, recon, kl


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        logits, mu, log_var = vae(x)
        loss, recon, kl = vae_loss(x, logits, mu, log_var)
    grads = tape.gradient(loss, vae.trainable_weights)
    opt.apply_gradients(zip(grads, vae.trainable_weights))
    return loss, recon, kl


def reconstruction_mse(x):
    mu, _ = vae.encoder(x)
    rec = tf.sigmoid(vae.decoder(mu))
    return float(tf.reduce_mean(tf.square(rec - x)))


train_ds = tf.data.Dataset.from_tensor_slices(train_x).shuffle(1500).batch(BATCH_SIZE)

for epoch in range(1, EPOCHS + 1):
    totals = np.zeros(3)
    n = 0
    for xb in train_ds:
        totals += [float(v) for v in step(xb)]
        n += 1
    if epoch % 5 == 0:
        loss, recon, kl = totals / n
        print(f"[{epoch:3d}] loss={loss:.3f} recon={recon:.3f} kl={kl:.3f} test_mse={reconstruction_mse(test_x):.4f}")

print("baseline mse (mean image):", round(float(np.mean((test_x - train_x.mean(0)) ** 2)), 4))
print("final test mse:", round(reconstruction_mse(test_x), 4))
