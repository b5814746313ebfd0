# Homework 3: handwritten digits with a two-layer network, no Keras layers allowed
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

tf.random.set_seed(7)
np.random.seed(7)

digits = load_digits()
X = (digits.data / 16.0).astype("float32")
y = digits.target.astype("int64")
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.25, stratify=y, random_state=7)
mu = X_train.mean(axis=0)
sd = X_train.std(axis=0) + 0.1
X_train = (X_train - mu) / sd
X_test = (X_test - mu) / sd

N_IN, N_HIDDEN, N_OUT = 64, 48, 10
LR = 0.05
EPOCHS = 20
BATCH = 32


def glorot(n_in, n_out):
    limit = np.sqrt(6.0 / (n_in + n_out))
    return tf.random.uniform([n_in, n_out], -limit, limit)


W1 = tf.Variable(glorot(N_IN, N_HIDDEN), name="W1")
b1 = tf.Variable(tf.zeros([N_HIDDEN]), name="b1")
W2 = tf.Variable(glorot(N_HIDDEN, N_OUT), name="W2")
b2 = tf.Variable(tf.zeros([N_OUT]), name="b2")
params = [W1, b1, W2, b2]


def forward(x):
    h = tf.nn.relu(tf.matmul(x, W1) + b1)
    return tf.nn.softmax(tf.matmul(h, W2) + b2)


def loss_fn(labels, out):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=out))


def accuracy(x, labels):
    pred = tf.argmax(forward(x), axis=1)
    return float(tf.reduce_mean(tf.cast(pred == labels, tf.float32)))


n = len(X_train)
for epoch in range(1, EPOCHS + 1):
    order = np.random.permutation(n)
    total = 0.0
    for start in range(0, n, BATCH):
        idx = order[start:start + BATCH]
        xb = tf.constant(X_train[idx])
        yb = tf.constant(y_train[idx])
        with tf.GradientTape() as tape:
            loss = loss_fn(yb, forward(xb))
        grads = tape.gradient(loss, params)
        for p, g in zip(params, grads):
            p.assign_sub(LR * g)
        total += float(loss) * len(idx)
    if epoch % 5 == 0 or epoch == 1:
        print("epoch %2d  train loss %.4f  train acc %.4f" %
              (epoch, total / n, accuracy(X_train, y_train)))

print("test loss %.4f" % float(loss_fn(y_test, forward(X_test))))
print("test acc  %.4f" % accuracy(X_test, y_test))
