"""Classify waveforms (sine / square / sawtooth / triangle) from noisy samples."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

tf.keras.utils.set_random_seed(11)

LENGTH = 128
CLASSES = ["sine", "square", "saw", "triangle"]
BATCH_SIZE = 32


def synth(n, rng):
    t = np.linspace(0, 1, LENGTH, endpoint=False)
    signals = np.empty((n, LENGTH, 1), "float32")
    kinds = rng.integers(0, len(CLASSES), n)
    for i, k in enumerate(kinds):
        phase = (rng.uniform(2, 6) * t + rng.uniform()) % 1.0
        if k == 0:
            s = np.sin(2 * np.pi * phase)
        elif k == 1:
            s = np.where(phase < 0.5, 1.0, -1.0)
        elif k == 2:
            s = 2 * phase - 1
        else:
            s = 4 * np.abs(phase - 0.5) - 1
        s = s + rng.normal(0, 0.15, LENGTH)
        signals[i, :, 0] = (s - s.mean()) / s.std()
    return signals, kinds.astype("int32")


rng = np.random.default_rng(11)
x_train, y_train = synth(2400, rng)
x_val, y_val = synth(400, rng)
x_test, y_test = synth(600, rng)

signals_ds = tf.data.Dataset.from_tensor_slices(x_train).shuffle(2400)
labels_ds = tf.data.Dataset.from_tensor_slices(y_train).shuffle(2400)
train_ds = tf.data.Dataset.zip((signals_ds, labels_ds)).batch(BATCH_SIZE).prefetch(2)
val_ds = tf.data.Dataset.from_tensor_slices((x_val, y_val)).batch(BATCH_SIZE)
test_ds = tf.data.Dataset.from_tensor_slices((x_test, y_test)).batch(BATCH_SIZE)

model = keras.Sequential([
    keras.Input((LENGTH, 1)),
    layers.Conv1D(16, 7, strides=2, padding="same", use_bias=False),
    layers.BatchNormalization(),
    layers.ReLU(),
    layers.Conv1D(32, 5, strides=2, padding="same", use_bias=False),
    layers.BatchNormalization(),
    layers.ReLU(),
    layers.Conv1D(32, 5, padding="same", activation="relu"),
    layers.GlobalAveragePooling1D(),
    layers.Dense(len(CLASSES), activation="softmax"),
])

model.compile(optimizer=keras.optimizers.Adam(1e-3),
              loss=keras.losses.SparseCategoricalCrossentropy(),
              metrics=["accuracy"])

history = model.fit(train_ds, epochs=12, validation_data=val_ds, verbose=2)

loss, acc = model.evaluate(test_ds, verbose=0)
print("Test accuracy: {:.2%}  (loss {:.3f})".format(acc, loss))

pred = np.argmax(model.predict(x_test, verbose=0), axis=-1)
cm = tf.math.confusion_matrix(y_test, pred, num_classes=len(CLASSES)).numpy()
print("confusion matrix")
for name, row in zip(CLASSES, cm):
    print(f"{name:>9}", row)
