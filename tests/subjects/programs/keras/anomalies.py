"""An autoencoder of normal heartbeats: what it cannot rebuild is an anomaly, by a threshold of the training set."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from tensorflow.keras import Model, Sequential, callbacks, layers, losses, utils

utils.set_random_seed(5)


def beats(n, normal):
    t = np.linspace(0, 1, 32)
    shift, width = np.random.uniform(-0.05, 0.05, (n, 1)), 0.06 if normal else 0.15
    peak = np.exp(-((t - 0.5 - shift) ** 2) / (2 * width**2))
    return (peak + 0.05 * np.random.randn(n, 32) + (0 if normal else 0.4 * np.sin(9 * t))).astype("float32")


class AnomalyDetector(Model):
    def __init__(self):
        super().__init__()
        self.encoder = Sequential([layers.Dense(16, activation="relu"), layers.Dense(4, activation="relu")])
        self.decoder = Sequential([layers.Dense(16, activation="relu"), layers.Dense(32, activation="sigmoid")])

    def call(self, x):
        return self.decoder(self.encoder(x))


normal_train, normal_test, anomalous_test = beats(128, True), beats(32, True), beats(32, False)
low, high = normal_train.min(), normal_train.max()
normal_train, normal_test, anomalous_test = (
    (d - low) / (high - low) for d in (normal_train, normal_test, anomalous_test)
)

autoencoder = AnomalyDetector()
autoencoder.compile(optimizer="adam", loss="mae")
history = autoencoder.fit(
    normal_train,
    normal_train,
    epochs=4,
    batch_size=32,
    validation_data=(normal_test, normal_test),
    shuffle=True,
    verbose=0,
    callbacks=[callbacks.EarlyStopping(patience=3)],
)
for epoch, (loss, val_loss) in enumerate(zip(history.history["loss"], history.history["val_loss"])):
    print(f"Epoch {epoch + 1} loss: {loss:.6f} val_loss: {val_loss:.6f}")

reconstructions = autoencoder.predict(normal_train, verbose=0)
train_loss = losses.mae(reconstructions, normal_train).numpy()
threshold = np.mean(train_loss) + np.std(train_loss)
found = [tf.math.less(losses.mae(autoencoder(data), data), threshold).numpy() for data in (normal_test, anomalous_test)]
print(f"Threshold: {threshold:.5f} normal kept {found[0].mean():.3f} anomalies kept {found[1].mean():.3f}")
np.savez("scores.npz", train_loss=train_loss, kept=np.concatenate(found))
autoencoder.save_weights("detector.weights.h5")
print(np.random.rand())
