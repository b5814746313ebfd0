# Segment bright ellipses on a noisy, uneven background with a small U-Net like net.
import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(3)
SIZE = 32
N_TRAIN, N_VAL = 480, 96
BATCH = 16
EPOCHS = 7


def draw(n, seed):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    imgs = np.zeros((n, SIZE, SIZE, 1), "float32")
    masks = np.zeros((n, SIZE, SIZE, 1), "float32")
    for i in range(n):
        m = np.zeros((SIZE, SIZE), bool)
        for _ in range(rng.integers(1, 4)):
            cy, cx = rng.uniform(4, SIZE - 4, 2)
            a, b = rng.uniform(3, 7, 2)
            t = rng.uniform(0, np.pi)
            u = (xx - cx) * np.cos(t) + (yy - cy) * np.sin(t)
            v = -(xx - cx) * np.sin(t) + (yy - cy) * np.cos(t)
            m |= (u / a) ** 2 + (v / b) ** 2 < 1
        slope = rng.uniform(-0.3, 0.3, 2)
        bg = 0.4 + (slope[0] * xx + slope[1] * yy) / SIZE
        imgs[i, ..., 0] = bg + 0.35 * m + rng.normal(0, 0.15, m.shape)
        masks[i, ..., 0] = m
    return imgs, masks


def augment(image, mask):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_flip_up_down(image)
    image = tf.image.random_brightness(image, 0.1)
    return image, mask


x_tr, m_tr = draw(N_TRAIN, 0)
x_va, m_va = draw(N_VAL, 1)

train_ds = (
    tf.data.Dataset.from_tensor_slices((x_tr, m_tr))
    .shuffle(N_TRAIN)
    .map(augment, num_parallel_calls=1)
    .batch(BATCH)
    .prefetch(1)
)
val_ds = tf.data.Dataset.from_tensor_slices((x_va, m_va)).batch(BATCH)


def conv(x, f):
    x = layers.Conv2D(f, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.9)(x)
    return layers.ReLU()(x)


inp = keras.Input((SIZE, SIZE, 1))
c1 = conv(inp, 8)
c2 = conv(layers.MaxPooling2D()(c1), 16)
c3 = conv(layers.MaxPooling2D()(c2), 32)
u2 = conv(layers.Concatenate()([layers.UpSampling2D()(c3), c2]), 16)
u1 = conv(layers.Concatenate()([layers.UpSampling2D()(u2), c1]), 8)
out = layers.Conv2D(1, 1, activation="sigmoid")(u1)
unet = keras.Model(inp, out, name="mini_unet")


def dice(y_true, y_pred):
    p = tf.cast(y_pred > 0.5, tf.float32)
    inter = tf.reduce_sum(y_true * p, axis=(1, 2, 3))
    total = tf.reduce_sum(y_true, axis=(1, 2, 3)) + tf.reduce_sum(p, axis=(1, 2, 3))
    return (2 * inter + 1) / (total + 1)


unet.compile(optimizer=keras.optimizers.Adam(3e-3), loss="binary_crossentropy", metrics=[dice])
hist = unet.fit(train_ds, validation_data=val_ds, epochs=EPOCHS, verbose=2)

print("final val dice: %.4f" % hist.history["val_dice"][-1])
