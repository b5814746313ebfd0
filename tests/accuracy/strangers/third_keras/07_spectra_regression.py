"""Regress concentrations from synthetic spectra, half precision compute."""
import numpy as np
import tensorflow as tf
import keras
from keras import layers, ops

keras.utils.set_random_seed(1)
keras.mixed_precision.set_global_policy("mixed_float16")

rng = np.random.default_rng(1)
N, BINS, COMPOUNDS = 3000, 64, 3
grid = np.linspace(0, 1, BINS)
peaks = np.stack([
    np.exp(-((grid - c) / w) ** 2) + 0.5 * np.exp(-((grid - d) / w) ** 2)
    for c, d, w in [(0.2, 0.6, 0.08), (0.35, 0.8, 0.1), (0.5, 0.25, 0.07)]
])
conc = rng.uniform(0, 1, (N, COMPOUNDS)).astype("float32")
spectra = 1 - np.exp(-1.5 * conc @ peaks) + rng.normal(0, 0.02, (N, BINS))
spectra = ((spectra - spectra.mean(0)) / spectra.std(0)).astype("float32")

x_tr, x_te = spectra[:2400], spectra[2400:]
y_tr, y_te = conc[:2400], conc[2400:]


class WeightedRegressor(keras.Model):
    """Trains with a per-compound weight in the squared error."""

    def __init__(self, *args, compound_weights=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.compound_weights = tf.constant(compound_weights, tf.float32)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            err = ops.square(ops.cast(y, "float32") - ops.cast(y_pred, "float32"))
            loss = ops.mean(ops.sum(err * self.compound_weights, axis=-1))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        for m in self.metrics:
            if m.name == "loss":
                m.update_state(loss)
            else:
                m.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


inputs = keras.Input((BINS,))
h = layers.Dense(64, activation="relu")(inputs)
h = layers.Dense(32, activation="relu")(h)
outputs = layers.Dense(COMPOUNDS, dtype="float32")(h)
model = WeightedRegressor(inputs, outputs, compound_weights=[1.0, 1.0, 2.0])

model.compile(
    optimizer=keras.optimizers.SGD(0.02, momentum=0.9),
    loss="mse",
    metrics=["mae"],
)
model.fit(x_tr, y_tr, batch_size=32, epochs=15, verbose=2)

pred = model.predict(x_te, verbose=0)
print("test MAE per compound:", np.abs(pred - y_te).mean(0).round(4))
print("test R2: %.4f" % (1 - ((pred - y_te) ** 2).sum() / ((y_te - y_te.mean(0)) ** 2).sum()))
