"""Binary segmentation of bright cells with a small U-Net and a tf.data input pipeline."""
import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
SIZE = 32
AUTOTUNE = tf.data.AUTOTUNE


def synth(n):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    imgs = rng.normal(0.3, 0.12, (n, SIZE, SIZE, 1)).astype("float32")
    masks = np.zeros((n, SIZE, SIZE, 1), "float32")
    for k in range(n):
        for _ in range(rng.integers(1, 5)):
            cy, cx = rng.uniform(3, SIZE - 3, 2)
            a, b = rng.uniform(2.5, 6, 2)
            cell = ((yy - cy) / a) ** 2 + ((xx - cx) / b) ** 2 < 1
            masks[k, cell, 0] = 1
        imgs[k, ..., 0] += masks[k, ..., 0] * rng.uniform(0.15, 0.35)
    return np.clip(imgs, 0, 1), masks


x_train, y_train = synth(600)
x_val, y_val = synth(150)


def augment(image, mask):
    image = tf.image.random_flip_left_right(image)
    mask = tf.image.random_flip_left_right(mask)
    image = tf.image.random_brightness(image, 0.05)
    return image, mask


train_ds = (
    tf.data.Dataset.from_tensor_slices((x_train, y_train))
    .shuffle(600)
    .map(augment, num_parallel_calls=AUTOTUNE)
    .batch(16)
    .prefetch(AUTOTUNE)
)
val_ds = tf.data.Dataset.from_tensor_slices((x_val, y_val)).batch(50)


def conv_block(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization(momentum=0.9)(x)
        x = layers.Activation("relu")(x)
    return x


def unet():
    inp = keras.Input((SIZE, SIZE, 1))
    c1 = conv_block(inp, 8)
    c2 = conv_block(layers.MaxPooling2D()(c1), 16)
    c3 = conv_block(layers.MaxPooling2D()(c2), 24)
    u2 = layers.Concatenate()([layers.UpSampling2D()(c3), c2])
    c4 = conv_block(u2, 16)
    u1 = layers.Concatenate()([layers.UpSampling2D()(c4), c1])
    c5 = conv_block(u1, 8)
    out = layers.Conv2D(1, 1, activation="sigmoid")(c5)
    return keras.Model(inp, out)


model = unet()
model.compile(
    optimizer=keras.optimizers.Adam(2e-3),
    loss="binary_crossentropy",
    metrics=["accuracy", keras.metrics.BinaryIoU(target_class_ids=[1], name="iou")],
)
model.fit(train_ds, validation_data=val_ds, epochs=8, verbose=2)

res = model.evaluate(val_ds, verbose=0, return_dict=True)
print("validation:", {k: round(float(v), 4) for k, v in res.items()})
