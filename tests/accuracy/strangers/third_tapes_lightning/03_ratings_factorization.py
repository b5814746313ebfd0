"""Matrix factorisation for a recommender, written with plain TensorFlow."""
import numpy as np
import tensorflow as tf

rng = np.random.RandomState(7)
tf.random.set_seed(7)

n_users, n_items, rank = 300, 200, 5
true_u = rng.randn(n_users, rank) * 0.6
true_v = rng.randn(n_items, rank) * 0.6
user_mood = 0.3 * rng.randn(n_users)
item_quality = 0.4 * rng.randn(n_items)

# 24k observed ratings out of 60k
cells = rng.permutation(n_users * n_items)[:24000]
users, items = np.divmod(cells, n_items)
ratings = (3.4 + user_mood[users] + item_quality[items]
           + (true_u[users] * true_v[items]).sum(1) + 0.25 * rng.randn(len(cells)))
ratings = np.clip(ratings, 1, 5).astype(np.float32)
split = 20000


class Factorizer(tf.Module):
    def __init__(self, k, mean_rating, name=None):
        super().__init__(name=name)
        self.mu = tf.constant(mean_rating, tf.float32)
        self.user_factors = tf.Variable(tf.zeros([n_users, k]), name="user_factors")
        self.item_factors = tf.Variable(tf.zeros([n_items, k]), name="item_factors")
        self.user_bias = tf.Variable(tf.zeros([n_users]), name="user_bias")
        self.item_bias = tf.Variable(tf.zeros([n_items]), name="item_bias")

    def __call__(self, u, i):
        pu = tf.gather(self.user_factors, u)
        qi = tf.gather(self.item_factors, i)
        dot = tf.reduce_sum(pu * qi, axis=1)
        return self.mu + tf.gather(self.user_bias, u) + tf.gather(self.item_bias, i) + dot

    def penalty(self, u, i):
        return (tf.reduce_mean(tf.square(tf.gather(self.user_factors, u)))
                + tf.reduce_mean(tf.square(tf.gather(self.item_factors, i))))


model = Factorizer(8, ratings[:split].mean())
optimizer = tf.keras.optimizers.Adam(learning_rate=0.01)
reg = 0.05


@tf.function
def train_step(u, i, r):
    with tf.GradientTape() as tape:
        err = model(u, i) - r
        loss = tf.reduce_mean(err ** 2) + reg * model.penalty(u, i)
    params = model.trainable_variables
    grads = tape.gradient(loss, params)
    optimizer.apply_gradients(zip(grads, params))
    return tf.reduce_mean(err ** 2)


def rmse(lo, hi):
    e = model(users[lo:hi], items[lo:hi]).numpy() - ratings[lo:hi]
    return float(np.sqrt((e ** 2).mean()))


data = tf.data.Dataset.from_tensor_slices(
    (users[:split].astype(np.int32), items[:split].astype(np.int32), ratings[:split]))
data = data.shuffle(split, seed=7).batch(256)

for epoch in range(1, 21):
    losses = [float(train_step(u, i, r)) for u, i, r in data]
    if epoch % 2 == 0:
        print("epoch %2d  train mse %.4f  test rmse %.4f"
              % (epoch, np.mean(losses), rmse(split, len(cells))))

print("final train rmse %.4f, test rmse %.4f" % (rmse(0, split), rmse(split, len(cells))))
