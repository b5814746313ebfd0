"""Similar digits by triplets: a siamese model whose train_step and test_step compute the loss themselves."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
from tensorflow import keras
from tensorflow.keras import layers, metrics

keras.utils.set_random_seed(3)


class DistanceLayer(layers.Layer):
    def call(self, anchor, positive, negative):
        return tf.reduce_sum(tf.square(anchor - positive), -1), tf.reduce_sum(tf.square(anchor - negative), -1)


class SiameseModel(keras.Model):
    def __init__(self, siamese_network, margin=0.5):
        super().__init__()
        self.siamese_network, self.margin = siamese_network, margin
        self.loss_tracker = metrics.Mean(name="loss")

    def call(self, inputs):
        return self.siamese_network(inputs)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self._compute_loss(data)
        gradients = tape.gradient(loss, self.siamese_network.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.siamese_network.trainable_weights))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def test_step(self, data):
        self.loss_tracker.update_state(self._compute_loss(data))
        return {"loss": self.loss_tracker.result()}

    def _compute_loss(self, data):
        ap_distance, an_distance = self.siamese_network(data)
        return tf.reduce_mean(tf.maximum(ap_distance - an_distance + self.margin, 0.0))

    @property
    def metrics(self):
        return [self.loss_tracker]


def triplets(n, rng):
    digits = load_digits()
    by_label = [digits.data[digits.target == label] / 16 for label in range(10)]
    for _ in range(n):
        same, other = rng.choice(10, 2, replace=False)
        first, second = rng.choice(len(by_label[same]), 2, replace=False)
        yield by_label[same][first], by_label[same][second], by_label[other][rng.integers(len(by_label[other]))]


rng = np.random.default_rng(3)
data = tuple(np.stack(part).astype("float32") for part in zip(*triplets(160, rng)))
dataset = tf.data.Dataset.from_tensor_slices(data)
train, val = dataset.take(128).batch(32), dataset.skip(128).batch(16)

embedding = keras.Sequential([keras.Input((64,)), layers.Dense(32, "relu"), layers.Dense(8)], name="embedding")
inputs = [keras.Input((64,), name=name) for name in ("anchor", "positive", "negative")]
distances = DistanceLayer()(*(embedding(each) for each in inputs))
siamese_model = SiameseModel(keras.Model(inputs, distances))
siamese_model.compile(optimizer=keras.optimizers.Adam(2e-3), weighted_metrics=[])
history = siamese_model.fit(train, epochs=3, validation_data=val, verbose=0)
for loss, val_loss in zip(history.history["loss"], history.history["val_loss"]):
    print(f"loss: {loss:.6f} - val_loss: {val_loss:.6f}")
sample = next(iter(val))
print("distances", [float(tf.reduce_mean(d)) for d in siamese_model.predict(sample, verbose=0)])
embedding.save_weights("embedding.weights.h5")
print(rng.random(), np.random.rand())
