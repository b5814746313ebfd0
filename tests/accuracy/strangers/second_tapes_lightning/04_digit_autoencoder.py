import time

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

keras.utils.set_random_seed(2024)
LATENT = 8
EPOCHS = 60
BATCH = 64

data, labels = load_digits(return_X_y=True)
data = (data / 16.0).astype("float32")
perm = np.random.permutation(len(data))
data, labels = data[perm], labels[perm]
x_train, x_test = data[:1400], data[1400:]
l_train, l_test = labels[:1400], labels[1400:]

ds = tf.data.Dataset.from_tensor_slices(x_train).shuffle(1400).batch(BATCH, drop_remainder=True)

encoder = keras.Sequential([
    keras.Input((64,)),
    layers.Dense(64, activation="relu"),
    layers.Dense(32, activation="relu"),
    layers.Dense(LATENT),
], name="encoder")

decoder = keras.Sequential([
    keras.Input((LATENT,)),
    layers.Dense(32, activation="relu"),
    layers.Dense(64, activation="relu"),
    layers.Dense(64, activation="sigmoid"),
], name="decoder")

encoder.summary()
decoder.summary()

mse = keras.losses.MeanSquaredError()
opt = keras.optimizers.Adam(2e-3)
variables = decoder.trainable_variables


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        code = encoder(batch, training=True)
        recon = decoder(code, training=True)
        loss = mse(batch, recon)
    grads = tape.gradient(loss, variables)
    opt.apply_gradients(zip(grads, variables))
    return loss


t0 = time.time()
for epoch in range(EPOCHS):
    running = keras.metrics.Mean()
    for batch in ds:
        running(train_step(batch))
    if (epoch + 1) % 10 == 0:
        test_mse = mse(x_test, decoder(encoder(x_test, training=False), training=False))
        print(f"epoch {epoch + 1}: train mse {float(running.result()):.5f}, test mse {float(test_mse):.5f}")
print(f"trained in {time.time() - t0:.1f}s")

recon = decoder(encoder(x_test, training=False), training=False).numpy()
print("test reconstruction mse:", float(np.mean((recon - x_test) ** 2)))
print("pixel variance         :", float(np.mean((x_train.mean(0) - x_test) ** 2)))

z_train = encoder(x_train, training=False).numpy()
z_test = encoder(x_test, training=False).numpy()
z_mu, z_sd = z_train.mean(0), z_train.std(0) + 1e-6
clf = LogisticRegression(max_iter=2000).fit((z_train - z_mu) / z_sd, l_train)
print("linear probe accuracy  :", clf.score((z_test - z_mu) / z_sd, l_test))
