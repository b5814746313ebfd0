import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 7
EPOCHS = 15
BATCH = 32

np.random.seed(SEED)
tf.random.set_seed(SEED)

digits = load_digits()
x = (digits.data / 16.0).astype("float32")
y = digits.target.astype("int64")
x_train, x_test, y_train, y_test = train_test_split(
    x, y, test_size=0.2, random_state=SEED, stratify=y)
x_train, x_val, y_train, y_val = train_test_split(
    x_train, y_train, test_size=0.15, random_state=SEED, stratify=y_train)

train_ds = (tf.data.Dataset.from_tensor_slices((x_train, y_train))
            .shuffle(len(x_train), seed=SEED)
            .batch(BATCH))
val_ds = tf.data.Dataset.from_tensor_slices((x_val, y_val)).batch(128)
test_ds = tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(128)


class DigitNet(tf.keras.Model):
    def __init__(self, n_classes=10):
        super().__init__()
        self.d1 = tf.keras.layers.Dense(64, activation="relu", kernel_initializer="he_normal")
        self.d2 = tf.keras.layers.Dense(32, activation="relu", kernel_initializer="he_normal")
        self.out = tf.keras.layers.Dense(n_classes, activation="softmax")

    def call(self, inputs):
        h = self.d1(inputs)
        h = self.d2(h)
        return self.out(h)


model = DigitNet()
optimizer = tf.keras.optimizers.SGD(learning_rate=0.02, momentum=0.9)
train_loss = tf.keras.metrics.Mean()
acc = tf.keras.metrics.SparseCategoricalAccuracy()


@tf.function
def train_step(xb, yb):
    with tf.GradientTape() as tape:
        preds = model(xb, training=True)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=yb, logits=preds))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    train_loss.update_state(loss)


def evaluate(ds):
    acc.reset_state()
    for xb, yb in ds:
        acc.update_state(yb, model(xb, training=False))
    return float(acc.result())


for epoch in range(EPOCHS):
    train_loss.reset_state()
    for xb, yb in train_ds:
        train_step(xb, yb)
    print(f"epoch {epoch + 1:2d}  loss {float(train_loss.result()):.4f}  val_acc {evaluate(val_ds):.4f}")

print(f"test accuracy: {evaluate(test_ds):.4f}")
