"""Binary classifier for machine states, small tf.Module with its own loss."""
import numpy as np
import tensorflow as tf
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

rng = np.random.default_rng(0)
tf.random.set_seed(0)

X, y = make_classification(n_samples=6000, n_features=16, n_informative=12, n_redundant=2,
                           n_clusters_per_class=2, class_sep=2.5, flip_y=0.0, random_state=0)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.3, random_state=0)
mean, std = X_train.mean(0), X_train.std(0)
X_train = ((X_train - mean) / std).astype(np.float32)
X_val = ((X_val - mean) / std).astype(np.float32)
y_train = y_train.astype(np.float32).reshape(-1, 1)
y_val = y_val.astype(np.float32).reshape(-1, 1)


class Dense(tf.Module):
    def __init__(self, n_in, n_out, activation=None, name=None):
        super().__init__(name=name)
        scale = np.sqrt(2.0 / n_in)
        self.w = tf.Variable(tf.random.normal([n_in, n_out]) * scale)
        self.b = tf.Variable(tf.zeros([n_out]))
        self.activation = activation

    def __call__(self, x):
        z = x @ self.w + self.b
        return self.activation(z) if self.activation else z


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.l1 = Dense(16, 48, tf.nn.relu)
        self.l2 = Dense(48, 24, tf.nn.relu)
        self.l3 = Dense(24, 1, tf.nn.sigmoid)

    def __call__(self, x):
        return self.l3(self.l2(self.l1(x)))


def bce(y_true, p):
    return -tf.reduce_mean(y_true * tf.math.log(p) + (1.0 - y_true) * tf.math.log(1.0 - p))


net = Net()
opt = tf.keras.optimizers.Adam(1e-3)
opt.build(net.trainable_variables)


@tf.function
def step(xb, yb):
    with tf.GradientTape() as tape:
        loss = bce(yb, net(xb))
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return loss


batch = 64
history = []
for epoch in range(25):
    perm = rng.permutation(len(X_train))
    losses = []
    for i in range(0, len(perm) - batch + 1, batch):
        idx = perm[i:i + batch]
        losses.append(float(step(tf.constant(X_train[idx]), tf.constant(y_train[idx]))))
    p = net(tf.constant(X_val)).numpy()
    acc = float(((p > 0.5) == (y_val > 0.5)).mean())
    history.append((np.mean(losses), acc))
    print(f"[{epoch:02d}] loss={np.mean(losses):.5f} val_loss={float(bce(y_val, p)):.5f} val_acc={acc:.4f}")

p = net(tf.constant(X_val)).numpy().ravel()
print("final val accuracy:", round(history[-1][1], 4))
print("final val F1      :", round(f1_score(y_val.ravel() > 0.5, p > 0.5), 4))
