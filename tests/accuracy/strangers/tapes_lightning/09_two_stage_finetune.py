"""Pretrain a small conv net on digits, then adapt it to rotated digits:
first the new head alone, then the whole network at a lower rate."""
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from tensorflow.keras import layers

tf.keras.utils.set_random_seed(9)

digits = load_digits()
images = (digits.images / 16.0).astype("float32")[..., None]
labels = digits.target.astype("int64")
order = np.random.default_rng(9).permutation(len(images))
images, labels = images[order], labels[order]

src_x, src_y = images[:900], labels[:900]
rotated = np.rot90(images[900:], axes=(1, 2)).copy()
rot_y = labels[900:]
tgt_x, tgt_y = rotated[:500], rot_y[:500]
test_x, test_y = rotated[500:], rot_y[500:]

loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def make_backbone():
    return tf.keras.Sequential([
        tf.keras.Input((8, 8, 1)),
        layers.Conv2D(12, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(24, 3, padding="same", activation="relu"),
        layers.Flatten(),
        layers.Dense(24, activation="relu"),
    ], name="backbone")


def make_train_step(model, optimizer):
    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x, training=True))
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return loss
    return train_step


def accuracy(model, x, y):
    return float(np.mean(np.argmax(model(x, training=False).numpy(), axis=1) == y))


def run(step_fn, x, y, epochs):
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).batch(32)
    for _ in range(epochs):
        losses = [float(step_fn(xb, yb)) for xb, yb in ds]
    return np.mean(losses)


# stage 0: source task
backbone = make_backbone()
source_model = tf.keras.Sequential([backbone, layers.Dense(10)])
pre_loss = run(make_train_step(source_model, tf.keras.optimizers.Adam(2e-3)), src_x, src_y, 10)
print(f"pretraining: loss {pre_loss:.4f}")

# stage 1: new head on the frozen backbone
backbone.trainable = False
model = tf.keras.Sequential([tf.keras.Input((8, 8, 1)), backbone, layers.Dense(10)])
optimizer = tf.keras.optimizers.Adam(5e-3)
train_step = make_train_step(model, optimizer)
for k in range(3):
    loss = run(train_step, tgt_x, tgt_y, 5)
    print(f"head only  : loss {loss:.4f}  test acc {accuracy(model, test_x, test_y):.4f}")

# stage 2: everything
backbone.trainable = True
optimizer.learning_rate = 1e-3
for k in range(4):
    loss = run(train_step, tgt_x, tgt_y, 5)
    print(f"fine-tuning: loss {loss:.4f}  test acc {accuracy(model, test_x, test_y):.4f}")
