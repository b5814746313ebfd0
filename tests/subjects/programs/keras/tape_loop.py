"""Regression by a loop over a GradientTape inside a tf.function, with weight decay, clipping and checkpoints."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

tf.random.set_seed(33)
rng = np.random.default_rng(33)
X = rng.uniform(-1, 1, size=(128, 5)).astype("float32")
Y = (X @ np.array([[1.0], [-2], [0.5], [0], [3]]) + 0.1 * rng.normal(size=(128, 1))).astype("float32")


class MLP(tf.Module):
    def __init__(self, sizes, name=None):
        super().__init__(name=name)
        self.weights, self.biases = [], []
        for number, (i, o) in enumerate(zip(sizes[:-1], sizes[1:])):
            start = tf.random.stateless_normal((i, o), seed=[number, 7]) / i**0.5
            self.weights.append(tf.Variable(start, name=f"w{number}"))
            self.biases.append(tf.Variable(tf.zeros(o), name=f"b{number}"))

    def __call__(self, x):
        for w, b in zip(self.weights[:-1], self.biases[:-1]):
            x = tf.nn.tanh(x @ w + b)
        return x @ self.weights[-1] + self.biases[-1]


model = MLP([5, 12, 1], name="mlp")
optimizer = tf.keras.optimizers.Adam(0.02)
checkpoint = tf.train.Checkpoint(model=model)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        error = tf.reduce_mean(tf.square(model(x) - y))
        loss = error + 1e-3 * tf.add_n([tf.nn.l2_loss(w) for w in model.weights])
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, norm = tf.clip_by_global_norm(gradients, 2.0)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss, norm


step = 0
for epoch in range(4):
    order = rng.permutation(len(X))
    for rows in np.split(order, 4):
        loss, norm = train_step(tf.constant(X[rows]), tf.constant(Y[rows]))
        print(f"step {step} loss {float(loss):.6f} norm {float(norm):.5f}")
        step += 1
    rest = tf.reduce_mean(tf.square(model(X) - Y))
    print(f"epoch {epoch} error {float(rest):.6f}")
path = checkpoint.write("mlp.ckpt")
print(os.path.basename(path), tf.random.uniform((2,)).numpy().tolist(), rng.random())
