import logging

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
logger = logging.getLogger(__name__)


class WineNet(keras.Model):
    """Raw measurements in, cultivar out. The first BatchNorm takes care of the units."""

    def __init__(self, n_classes):
        super().__init__()
        self.norm_in = layers.BatchNormalization(momentum=0.9)
        self.fc1 = layers.Dense(32, use_bias=False)
        self.norm1 = layers.BatchNormalization(momentum=0.9)
        self.drop = layers.Dropout(0.2)
        self.head = layers.Dense(n_classes)

    def call(self, x, training=None):
        x = self.norm_in(x, training=training)
        x = tf.nn.relu(self.norm1(self.fc1(x), training=training))
        x = self.drop(x, training=training)
        return self.head(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x)
            loss = self.compute_loss(x=x, y=y, y_pred=logits)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        for m in self.metrics:
            if m.name == "loss":
                m.update_state(loss)
            else:
                m.update_state(y, logits)
        return {m.name: m.result() for m in self.metrics}


def bootstrap(x, y, n, rng):
    """Resample the measurements with a little instrument noise."""
    idx = rng.integers(0, len(x), n)
    return x[idx] + rng.normal(0, 0.25, (n, x.shape[1])) * x.std(0), y[idx]


def main():
    keras.utils.set_random_seed(12)
    rng = np.random.default_rng(12)
    data = load_wine()
    x_tr, x_te, y_tr, y_te = train_test_split(
        data.data, data.target, test_size=0.3, stratify=data.target, random_state=12
    )
    x_train, y_train = bootstrap(x_tr, y_tr, 1200, rng)
    x_test, y_test = bootstrap(x_te, y_te, 600, rng)

    model = WineNet(3)
    model.compile(
        optimizer=keras.optimizers.Adam(2e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[keras.metrics.SparseCategoricalAccuracy(name="acc")],
    )
    hist = model.fit(
        x_train.astype("float32"),
        y_train,
        validation_data=(x_test.astype("float32"), y_test),
        batch_size=32,
        epochs=8,
        verbose=0,
    )
    for e, (l, vl, va) in enumerate(
        zip(hist.history["loss"], hist.history["val_loss"], hist.history["val_acc"])
    ):
        logger.info("epoch %d loss %.4f val_loss %.4f val_acc %.4f", e + 1, l, vl, va)
    logger.info("input moving mean: %s", keras.ops.convert_to_numpy(model.norm_in.moving_mean).round(2))


if __name__ == "__main__":
    main()
