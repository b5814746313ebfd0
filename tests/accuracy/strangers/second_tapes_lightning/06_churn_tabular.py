import argparse

import numpy as np
import tensorflow as tf
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

cfg = argparse.Namespace(seed=5, epochs=50, batch_size=64, lr=1e-3, hidden=64, drop=0.5)
tf.keras.utils.set_random_seed(cfg.seed)


def make_customers(n, rng):
    """Usage, contract and billing features, and whether the customer left."""
    x = rng.normal(size=(n, 30)).astype("float32")
    score = (1.6 * x[:, 0] - 1.2 * x[:, 1] + 1.0 * x[:, 2] * x[:, 3]
             + 0.8 * np.abs(x[:, 4]) - 0.6 + 0.7 * x[:, 5])
    prob = 1 / (1 + np.exp(-score))
    return x, (rng.uniform(size=n) < prob).astype("float32")


x, y = make_customers(5000, np.random.default_rng(cfg.seed))
x_tr, x_va, y_tr, y_va = train_test_split(x, y, test_size=0.4, random_state=cfg.seed, stratify=y)


class ChurnNet(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.fc1 = tf.keras.layers.Dense(cfg.hidden, activation="relu")
        self.do1 = tf.keras.layers.Dropout(cfg.drop)
        self.fc2 = tf.keras.layers.Dense(cfg.hidden, activation="relu")
        self.do2 = tf.keras.layers.Dropout(cfg.drop)
        self.out = tf.keras.layers.Dense(1)

    def call(self, inputs, training=None):
        h = self.do1(self.fc1(inputs), training=training)
        h = self.do2(self.fc2(h), training=training)
        return tf.squeeze(self.out(h), -1)


model = ChurnNet()
optimizer = tf.keras.optimizers.Adam(cfg.lr)


@tf.function
def train_step(xb, yb):
    with tf.GradientTape() as tape:
        logits = model(xb)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=yb, logits=logits))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def evaluate():
    p = tf.sigmoid(model(x_va, training=False)).numpy()
    return log_loss(y_va, p), roc_auc_score(y_va, p)


ds = tf.data.Dataset.from_tensor_slices((x_tr, y_tr)).shuffle(len(x_tr)).batch(cfg.batch_size)
for epoch in range(cfg.epochs):
    losses = [train_step(xb, yb).numpy() for xb, yb in ds]
    if epoch % 10 == 9 or epoch == 0:
        vl, auc = evaluate()
        print("epoch=%d train_loss=%.4f val_loss=%.4f val_auc=%.4f" % (epoch + 1, np.mean(losses), vl, auc))

vl, auc = evaluate()
print("=" * 40)
print("validation log-loss: %.4f" % vl)
print("validation ROC AUC : %.4f" % auc)
