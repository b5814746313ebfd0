import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

IMG = 24
BATCH = 32
tf.keras.utils.set_random_seed(13)


def make_scene(rng):
    yy, xx = np.mgrid[0:IMG, 0:IMG]
    cy, cx = rng.uniform(5, IMG - 5, 2)
    ry, rx = rng.uniform(3, 6, 2)
    mask = (((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2) < 1.0
    image = 0.8 * mask + 0.25 * np.sin(xx / 3.0 + rng.uniform(0, 6)) + 0.35 * rng.normal(size=(IMG, IMG))
    return image.astype("float32")[..., None], mask.astype("float32")[..., None]


def make_set(n, seed):
    rng = np.random.default_rng(seed)
    pairs = [make_scene(rng) for _ in range(n)]
    return np.stack([p[0] for p in pairs]), np.stack([p[1] for p in pairs])


def augment(image, mask):
    image = tf.image.random_flip_left_right(image)
    mask = tf.image.random_flip_left_right(mask)
    image = image + tf.random.uniform((), -0.1, 0.1)
    return image, mask


train_x, train_y = make_set(480, seed=0)
val_x, val_y = make_set(160, seed=1)
train_ds = (tf.data.Dataset.from_tensor_slices((train_x, train_y))
            .shuffle(480)
            .map(augment)
            .batch(BATCH))

model = tf.keras.Sequential([
    tf.keras.Input((IMG, IMG, 1)),
    layers.Conv2D(8, 3, padding="same", activation="relu", kernel_initializer="he_normal"),
    layers.Conv2D(12, 3, padding="same", strides=2, activation="relu", kernel_initializer="he_normal"),
    layers.Conv2D(12, 3, padding="same", activation="relu", kernel_initializer="he_normal"),
    layers.UpSampling2D(interpolation="bilinear"),
    layers.Conv2D(8, 3, padding="same", activation="relu", kernel_initializer="he_normal"),
    layers.Conv2D(1, 1),
])
optimizer = tf.keras.optimizers.Adam(4e-3)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def mean_iou(x, y):
    pred = model(x, training=False).numpy() > 0
    true = y > 0.5
    inter = np.logical_and(pred, true).sum(axis=(1, 2, 3))
    union = np.logical_or(pred, true).sum(axis=(1, 2, 3))
    return float((inter / union).mean())


for epoch in range(1, 11):
    losses = []
    for x, y in train_ds:
        losses.append(float(train_step(x, y)))
    print(f"epoch {epoch:2d} | loss {np.mean(losses):.4f} | val IoU {mean_iou(val_x, val_y):.4f}")
