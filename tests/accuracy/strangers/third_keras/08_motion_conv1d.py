import numpy as np
import keras
from keras import layers

keras.utils.set_random_seed(99)
rng = np.random.default_rng(99)

CLASSES = ["walk", "run", "stairs", "cycle", "stand"]
T, CH = 96, 3


def record(label):
    t = np.arange(T) / 32.0
    freq = [1.6, 2.3, 1.9, 1.2, 0.3][label] + rng.normal(0, 0.2)
    amp = [1.0, 1.5, 1.1, 0.8, 0.3][label] * rng.uniform(0.7, 1.3)
    ph = rng.uniform(0, 2 * np.pi)
    harmonic = [0.3, 0.6, 0.7, 0.1, 0.0][label]
    base = amp * np.sin(2 * np.pi * freq * t + ph)
    base += harmonic * np.sin(4 * np.pi * freq * t + ph * 2)
    lag = [0.2, 0.1, 0.4, 0.6, 0.0][label]
    other = amp * 0.6 * np.sin(2 * np.pi * freq * (t - lag) + ph)
    sig = np.stack([base, other, 0.5 * base - 0.5 * other], axis=1)
    return sig + rng.normal(0, 1.1, (T, CH))


y = rng.integers(0, len(CLASSES), 2500)
x = np.stack([record(c) for c in y]).astype("float32")
x_train, y_train = x[:1800], y[:1800]
x_val, y_val = x[1800:2100], y[1800:2100]
x_test, y_test = x[2100:], y[2100:]

model = keras.Sequential([
    keras.Input((T, CH)),
    layers.Conv1D(16, 7, padding="same", activation="relu"),
    layers.MaxPooling1D(2),
    layers.Conv1D(32, 5, padding="same", activation="relu"),
    layers.MaxPooling1D(2),
    layers.Conv1D(32, 3, padding="same", activation="relu"),
    layers.GlobalAveragePooling1D(),
    layers.Dense(len(CLASSES), activation="softmax"),
])


def step_decay(epoch, lr):
    """Exponential decay, 10% less per epoch after a warm phase."""
    if epoch < 2:
        return lr
    return lr * 0.9 ** (epoch - 1)


class LogLR(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        lr = float(self.model.optimizer.learning_rate)
        print("epoch %2d  lr %.2e  loss %.4f  val_loss %.4f  val_acc %.3f" % (
            epoch, lr, logs["loss"], logs["val_loss"], logs["val_accuracy"]))


model.compile(
    optimizer=keras.optimizers.SGD(learning_rate=0.01, momentum=0.9),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(
    x_train, y_train,
    validation_data=(x_val, y_val),
    epochs=25, batch_size=64, verbose=0,
    callbacks=[keras.callbacks.LearningRateScheduler(step_decay), LogLR()],
)
print("test loss/acc:", [round(v, 4) for v in model.evaluate(x_test, y_test, verbose=0)])
