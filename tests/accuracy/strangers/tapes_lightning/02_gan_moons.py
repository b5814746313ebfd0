"""Small GAN on the two-moons distribution."""
import argparse

import numpy as np
import tensorflow as tf
from sklearn.datasets import make_moons
from tensorflow import keras
from tensorflow.keras import layers

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1400)
parser.add_argument("--batch_size", type=int, default=64)
parser.add_argument("--latent_dim", type=int, default=8)
parser.add_argument("--lr", type=float, default=1e-3)
args = parser.parse_args()

np.random.seed(0)
tf.random.set_seed(0)


def build_generator():
    return keras.Sequential([
        keras.Input((args.latent_dim,)),
        layers.Dense(64), layers.LeakyReLU(negative_slope=0.2),
        layers.Dense(64), layers.LeakyReLU(negative_slope=0.2),
        layers.Dense(2),
    ], name="generator")


def build_discriminator():
    return keras.Sequential([
        keras.Input((2,)),
        layers.Dense(64), layers.LeakyReLU(negative_slope=0.2),
        layers.Dense(64), layers.LeakyReLU(negative_slope=0.2),
        layers.Dense(1),
    ], name="discriminator")


points, _ = make_moons(n_samples=8000, noise=0.06, random_state=0)
points = (points - points.mean(0)) / points.std(0)
points = points.astype("float32")
real_train, real_test = points[:6000], points[6000:]
dataset = (tf.data.Dataset.from_tensor_slices(real_train)
           .shuffle(6000, seed=0).repeat().batch(args.batch_size))

gen, disc = build_generator(), build_discriminator()
g_opt = keras.optimizers.Adam(args.lr, beta_1=0.5)
d_opt = keras.optimizers.Adam(args.lr, beta_1=0.5)
bce = keras.losses.BinaryCrossentropy(from_logits=True)


@tf.function
def train_step(real):
    noise = np.random.normal(size=(args.batch_size, args.latent_dim)).astype("float32")
    with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
        fake = gen(noise, training=True)
        real_logits = disc(real, training=True)
        fake_logits = disc(fake, training=True)
        g_loss = bce(tf.ones_like(fake_logits), fake_logits)
        d_loss = 0.5 * (bce(0.9 * tf.ones_like(real_logits), real_logits)
                        + bce(tf.zeros_like(fake_logits), fake_logits))
    g_grads = g_tape.gradient(g_loss, gen.trainable_variables)
    d_grads = d_tape.gradient(d_loss, disc.trainable_variables)
    g_opt.apply_gradients(zip(g_grads, gen.trainable_variables))
    d_opt.apply_gradients(zip(d_grads, disc.trainable_variables))
    return g_loss, d_loss


def sliced_wasserstein(a, b, n_proj=100):
    rng = np.random.default_rng(1)
    theta = rng.uniform(0, np.pi, n_proj)
    dirs = np.stack([np.cos(theta), np.sin(theta)])
    pa, pb = np.sort(a @ dirs, axis=0), np.sort(b @ dirs, axis=0)
    return float(np.abs(pa - pb).mean())


def quality():
    z = np.random.default_rng(5).normal(size=(len(real_test), args.latent_dim)).astype("float32")
    return sliced_wasserstein(gen(z, training=False).numpy(), real_test)


print("start  distance", round(quality(), 4))
for step, real in enumerate(dataset.take(args.steps), 1):
    g_loss, d_loss = train_step(real)
    if step % 200 == 0:
        print(f"step {step:5d}  d_loss {float(d_loss):.3f}  g_loss {float(g_loss):.3f}  distance {quality():.4f}")
