"""Trains a Keras network on rare events, weighing samples, with a learning rate that warms up from zero."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(81)


@keras.saving.register_keras_serializable()
class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, peak, steps):
        self.peak, self.steps = peak, steps

    def __call__(self, step):
        return self.peak * keras.ops.minimum(1.0, keras.ops.cast(step, "float32") / self.steps)

    def get_config(self):
        return {"peak": self.peak, "steps": self.steps}


rng = np.random.default_rng(81)
x = rng.normal(size=(1500, 8)).astype("float32")
y = (x[:, 0] + x[:, 1] + 0.3 * rng.normal(size=1500) > 2.2).astype("float32")
weight = np.where(y == 1, (1 - y.mean()) / y.mean(), 1.0)
# Doubtful records count for nothing.
weight[rng.random(1500) < 0.1] = 0.0

model = keras.Sequential(
    [keras.Input((8,)), layers.Dense(32, activation="relu"), layers.Dropout(0.2), layers.Dense(1, activation="sigmoid")]
)
model.compile(optimizer=keras.optimizers.Adam(WarmUp(0.005, 40)), loss="binary_crossentropy")
history = model.fit(x[:1200], y[:1200], sample_weight=weight[:1200], batch_size=60, epochs=8, verbose=0)
print("loss by epoch", [round(v, 3) for v in history.history["loss"]])
found = model.predict(x[1200:], verbose=0)[:, 0] > 0.5
print(f"events {int(y[1200:].sum())} found {int((found & (y[1200:] == 1)).sum())} flagged {int(found.sum())}")
