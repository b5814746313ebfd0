"""Texture classification from 8-bit RGB tiles, fed by a PyDataset with augmentation."""
import numpy as np
import keras
from keras import layers

keras.utils.set_random_seed(13)

CLASSES = ("hstripes", "vstripes", "checker", "rings")
SIDE = 24


def render(n, rng):
    yy, xx = np.mgrid[0:SIDE, 0:SIDE].astype("float32")
    images = np.empty((n, SIDE, SIDE, 3), "uint8")
    labels = rng.integers(0, len(CLASSES), n)
    for i, k in enumerate(labels):
        f, p, q = rng.uniform(0.7, 1.2), *rng.uniform(0, 6.28, 2)
        if k == 0:
            t = np.sin(f * yy + p)
        elif k == 1:
            t = np.sin(f * xx + p)
        elif k == 2:
            t = np.sin(f * yy + p) * np.sin(f * xx + q)
        else:
            t = np.sin(f * np.hypot(yy - rng.uniform(8, 16), xx - rng.uniform(8, 16)) + p)
        c1, c2 = rng.uniform(60, 200, 3), rng.uniform(60, 200, 3)
        mix = (t[..., None] + 1) / 2
        img = c1 * mix + c2 * (1 - mix) + rng.normal(0, 18, (SIDE, SIDE, 3))
        images[i] = np.clip(img, 0, 255)
    return images, labels


class TileSequence(keras.utils.PyDataset):
    def __init__(self, images, labels, batch_size=32, augment=False, seed=0, **kwargs):
        super().__init__(**kwargs)
        self.images, self.labels = images, labels
        self.batch_size, self.augment = batch_size, augment
        self.rng = np.random.default_rng(seed)
        self.order = np.arange(len(images))
        self.on_epoch_end()

    def __len__(self):
        return int(np.ceil(len(self.images) / self.batch_size))

    def on_epoch_end(self):
        if self.augment:
            self.rng.shuffle(self.order)

    def __getitem__(self, i):
        idx = self.order[i * self.batch_size:(i + 1) * self.batch_size]
        x = self.images[idx].astype("float32")
        if self.augment:
            x = (x - 127.5) / 127.5
            x = self.random_flip(x)
        return x, self.labels[idx]

    def random_flip(self, x):
        for j in range(len(x)):
            if self.rng.random() < 0.5:
                x[j] = x[j, :, ::-1]
            if self.rng.random() < 0.5:
                x[j] = x[j, ::-1]
        return x


rng = np.random.default_rng(13)
train = TileSequence(*render(2000, rng), augment=True)
val = TileSequence(*render(400, rng))
test = TileSequence(*render(600, rng))

model = keras.Sequential([
    keras.Input((SIDE, SIDE, 3)),
    layers.Conv2D(16, 3, padding="same", activation="relu"),
    layers.MaxPooling2D(),
    layers.Conv2D(32, 3, padding="same", activation="relu"),
    layers.MaxPooling2D(),
    layers.Conv2D(32, 3, padding="same", activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(len(CLASSES), activation="softmax"),
])
model.compile(keras.optimizers.Adam(2e-3), loss="sparse_categorical_crossentropy", metrics=["accuracy"])

model.fit(train, validation_data=val, epochs=10, verbose=2)

loss, acc = model.evaluate(test, verbose=0)
print("test loss %.3f  test accuracy %.3f" % (loss, acc))
