# coding: utf-8
# Texture classifier (exported from the notebook textures_v2)
import numpy as np
import tensorflow as tf
import keras
from keras import layers
from sklearn.metrics import classification_report, confusion_matrix

keras.utils.set_random_seed(55)
IMG = 20
CLASS_NAMES = ["stripes", "checker", "dots", "noise"]


# In[2]:
def texture(kind, rng):
    yy, xx = np.mgrid[0:IMG, 0:IMG]
    p = rng.uniform(4, 7)
    ox, oy = rng.uniform(0, p, 2)
    if kind == 0:
        a = rng.uniform(0, np.pi)
        img = np.sin(2 * np.pi * (xx * np.cos(a) + yy * np.sin(a)) / p + ox)
    elif kind == 1:
        img = np.sign(np.sin(2 * np.pi * (xx + ox) / p) * np.sin(2 * np.pi * (yy + oy) / p))
    elif kind == 2:
        d = np.hypot((xx + ox) % p - p / 2, (yy + oy) % p - p / 2)
        img = 1.5 - d
    else:
        img = rng.normal(0, 1, (IMG, IMG))
    img = (img - img.mean()) / img.std()
    return img + rng.normal(0, 0.8, img.shape)


def make_split(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n)
    x = np.stack([texture(k, rng) for k in y])[..., None]
    return x.astype("float32"), y.astype("int32")


def to_dataset(x, y, batch_size=32, shuffle=True):
    ds = tf.data.Dataset.from_tensor_slices((x, y))
    if shuffle:
        ds = ds.shuffle(len(x))
    return ds.batch(batch_size).prefetch(1)


# In[3]:
train_ds = to_dataset(*make_split(1600, 1))
val_ds = to_dataset(*make_split(300, 2), shuffle=False)
test_ds = to_dataset(*make_split(400, 3))

# In[4]:
model = keras.Sequential(
    [
        keras.Input((IMG, IMG, 1)),
        layers.Conv2D(12, 5, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(24, 3, activation="relu"),
        layers.GlobalMaxPooling2D(),
        layers.Dropout(0.2),
        layers.Dense(len(CLASS_NAMES), activation="softmax"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(train_ds, validation_data=val_ds, epochs=6, verbose=2)

# In[5]:
print("evaluate:", model.evaluate(test_ds, verbose=0))
y_true = np.concatenate([y for _, y in test_ds])
y_pred = model.predict(test_ds, verbose=0).argmax(axis=1)
print(classification_report(y_true, y_pred, target_names=CLASS_NAMES, digits=3))
print(confusion_matrix(y_true, y_pred))
