"""A multilayer perceptron without Keras: layers, loss and Adam are written by hand, gradients come from a tape."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

tf.random.set_seed(22)
rng = np.random.default_rng(22)


class DenseLayer(tf.Module):
    def __init__(self, out_dim, activation=tf.identity):
        super().__init__()
        self.out_dim, self.activation, self.built = out_dim, activation, False

    def __call__(self, x):
        if not self.built:
            limit = np.sqrt(6 / (x.shape[-1] + self.out_dim))
            start = tf.random.uniform((x.shape[-1], self.out_dim), -limit, limit)
            self.w = tf.Variable(start, name="w")
            self.b = tf.Variable(tf.zeros(self.out_dim), name="b")
            self.built = True
        return self.activation(x @ self.w + self.b)


class MLP(tf.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Adam:
    def __init__(self, learning_rate=1e-3, beta_1=0.9, beta_2=0.999, ep=1e-7):
        self.beta_1, self.beta_2, self.learning_rate, self.ep = beta_1, beta_2, learning_rate, ep
        self.t, self.v_dvar, self.s_dvar = 1.0, [], []

    def apply_gradients(self, grads, variables):
        if not self.v_dvar:
            self.v_dvar = [tf.Variable(tf.zeros_like(var)) for var in variables]
            self.s_dvar = [tf.Variable(tf.zeros_like(var)) for var in variables]
        for i, (d_var, var) in enumerate(zip(grads, variables)):
            self.v_dvar[i].assign(self.beta_1 * self.v_dvar[i] + (1 - self.beta_1) * d_var)
            self.s_dvar[i].assign(self.beta_2 * self.s_dvar[i] + (1 - self.beta_2) * tf.square(d_var))
            v_hat = self.v_dvar[i] / (1 - self.beta_1**self.t)
            s_hat = self.s_dvar[i] / (1 - self.beta_2**self.t)
            var.assign_sub(self.learning_rate * (v_hat / (tf.sqrt(s_hat) + self.ep)))
        self.t += 1.0


def cross_entropy_loss(y_pred, y):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=y_pred))


def train_step(x_batch, y_batch, loss, model, optimizer):
    with tf.GradientTape() as tape:
        batch_loss = loss(model(x_batch), y_batch)
    grads = tape.gradient(batch_loss, model.variables)
    optimizer.apply_gradients(grads, model.variables)
    return batch_loss


x, y = load_digits(return_X_y=True)
x, y = tf.constant(x / 16, tf.float32), tf.constant(y, tf.int64)
model = MLP([DenseLayer(32, tf.nn.relu), DenseLayer(10)])
model(x[:1])
optimizer = Adam(0.01)
for epoch in range(3):
    for batch, rows in enumerate(np.split(rng.permutation(480), 6)):
        batch_loss = train_step(tf.gather(x, rows), tf.gather(y, rows), cross_entropy_loss, model, optimizer)
        print(f"epoch {epoch} batch {batch} loss {batch_loss.numpy():.6f}")
    val = cross_entropy_loss(model(x[1500:]), y[1500:])
    print(f"epoch {epoch} validation {val.numpy():.6f}")
np.savez("mlp.npz", *[v.numpy() for v in model.variables])
print(tf.random.uniform((2,)).numpy().tolist(), rng.random())
