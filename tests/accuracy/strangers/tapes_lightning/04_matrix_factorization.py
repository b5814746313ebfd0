import logging

import numpy as np
import tensorflow as tf

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("mf")

N_USERS, N_ITEMS, TRUE_RANK = 400, 250, 3
N_RATINGS = 12000
DIM = 16
REG = 4e-4


def make_ratings(seed=3):
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(N_USERS, TRUE_RANK))
    v = rng.normal(size=(N_ITEMS, TRUE_RANK))
    bu = 0.4 * rng.normal(size=N_USERS)
    bi = 0.4 * rng.normal(size=N_ITEMS)
    flat = rng.choice(N_USERS * N_ITEMS, size=N_RATINGS, replace=False)
    users, items = flat // N_ITEMS, flat % N_ITEMS
    r = 3.5 + bu[users] + bi[items] + 0.5 * (u[users] * v[items]).sum(1)
    r += 0.5 * rng.normal(size=N_RATINGS)
    return users.astype("int32"), items.astype("int32"), r.astype("float32")


class MatrixFactorization(tf.keras.Model):
    def __init__(self, n_users, n_items, dim, reg, mean_rating):
        super().__init__()
        l2 = tf.keras.regularizers.L2(reg)
        normal = tf.keras.initializers.RandomNormal(stddev=0.1, seed=1)
        self.user_emb = tf.keras.layers.Embedding(
            n_users, dim, embeddings_initializer=normal, embeddings_regularizer=l2)
        self.item_emb = tf.keras.layers.Embedding(
            n_items, dim, embeddings_initializer=tf.keras.initializers.RandomNormal(stddev=0.1, seed=2),
            embeddings_regularizer=l2)
        self.user_bias = tf.keras.layers.Embedding(n_users, 1, embeddings_initializer="zeros")
        self.item_bias = tf.keras.layers.Embedding(n_items, 1, embeddings_initializer="zeros")
        self.mean_rating = mean_rating

    def call(self, inputs):
        user, item = inputs
        dot = tf.reduce_sum(self.user_emb(user) * self.item_emb(item), axis=-1)
        bias = self.user_bias(user)[:, 0] + self.item_bias(item)[:, 0]
        return self.mean_rating + dot + bias


def main():
    tf.random.set_seed(3)
    users, items, ratings = make_ratings()
    n_train = int(0.8 * N_RATINGS)
    train = (users[:n_train], items[:n_train], ratings[:n_train])
    valid = (users[n_train:], items[n_train:], ratings[n_train:])

    model = MatrixFactorization(N_USERS, N_ITEMS, DIM, REG, float(train[2].mean()))
    optimizer = tf.keras.optimizers.Adam(1e-2)
    ds = tf.data.Dataset.from_tensor_slices(train).shuffle(n_train, seed=3).batch(256)

    @tf.function
    def train_step(u, i, r):
        with tf.GradientTape() as tape:
            pred = model((u, i), training=True)
            mse = tf.reduce_mean(tf.square(r - pred))
            loss = mse
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return mse

    def rmse(split):
        u, i, r = split
        pred = model((tf.constant(u), tf.constant(i)), training=False)
        return float(tf.sqrt(tf.reduce_mean(tf.square(pred - r))))

    for epoch in range(1, 21):
        for u, i, r in ds:
            train_step(u, i, r)
        if epoch % 2 == 0:
            log.info("epoch %2d  train rmse %.4f  valid rmse %.4f", epoch, rmse(train), rmse(valid))


if __name__ == "__main__":
    main()
