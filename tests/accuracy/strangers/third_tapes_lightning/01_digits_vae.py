"""Variational autoencoder on the 8x8 digits, with a KL warm-up."""
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

np.random.seed(0)
tf.random.set_seed(0)

LATENT = 6
EPOCHS = 40
WARMUP = 15
BATCH = 64

x = (load_digits().data / 16.0).astype("float32")
x_train, x_test = train_test_split(x, test_size=0.25, random_state=0)
train_ds = (tf.data.Dataset.from_tensor_slices(x_train)
            .shuffle(len(x_train), seed=1)
            .batch(BATCH, drop_remainder=True))

encoder = tf.keras.Sequential([
    tf.keras.layers.Input((64,)),
    tf.keras.layers.Dense(128, activation="relu"),
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(2 * LATENT),
])
decoder = tf.keras.Sequential([
    tf.keras.layers.Input((LATENT,)),
    tf.keras.layers.Dense(64, activation="relu"),
    tf.keras.layers.Dense(128, activation="relu"),
    tf.keras.layers.Dense(64),
])
optimizer = tf.keras.optimizers.Adam(2e-3)
weights = encoder.trainable_variables + decoder.trainable_variables

# weight of the KL term, raised from 0 to 1 over the first epochs
kl_weight = 0.0


def elbo_terms(batch):
    mean, logvar = tf.split(encoder(batch), 2, axis=-1)
    z = mean + tf.exp(0.5 * logvar) * tf.random.normal(tf.shape(mean))
    logits = decoder(z)
    rec = tf.reduce_sum(
        tf.nn.sigmoid_cross_entropy_with_logits(labels=batch, logits=logits), axis=-1)
    kl = 0.5 * tf.reduce_sum(tf.exp(logvar) + mean ** 2 - 1.0 - logvar, axis=-1)
    return tf.reduce_mean(rec), tf.reduce_mean(kl)


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        rec, kl = elbo_terms(batch)
        loss = rec + kl_weight * kl
    grads = tape.gradient(loss, weights)
    optimizer.apply_gradients(zip(grads, weights))
    return loss, rec, kl


for epoch in range(EPOCHS):
    kl_weight = min(1.0, epoch / WARMUP)
    sums = np.zeros(3)
    steps = 0
    for batch in train_ds:
        sums += [float(v) for v in train_step(batch)]
        steps += 1
    if epoch % 5 == 4:
        loss, rec, kl = sums / steps
        print(f"epoch {epoch + 1:2d}  loss {loss:.2f}  rec {rec:.2f}  kl {kl:.2f}")

rec, kl = elbo_terms(tf.constant(x_test))
print(f"test  rec {float(rec):.2f}  kl {float(kl):.2f}  negative elbo {float(rec + kl):.2f}")

samples = tf.sigmoid(decoder(tf.random.normal((500, LATENT)))).numpy()
# mean distance of a generated image to its nearest real one
d = np.sqrt(((samples[:, None] - x_test[None]) ** 2).sum(-1)).min(1).mean()
print(f"sample distance to the data {d:.3f}")
