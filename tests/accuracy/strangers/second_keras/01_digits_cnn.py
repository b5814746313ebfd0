"""Handwritten digit recognition with a small convnet."""
import numpy as np
import keras
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(42)

digits = load_digits()
images = (digits.images / 16.0).astype("float32")[..., np.newaxis]
labels = digits.target.astype("int32")

x_train, x_test, y_train, y_test = train_test_split(
    images, labels, test_size=0.2, stratify=labels, random_state=42)
x_train, x_val, y_train, y_val = train_test_split(
    x_train, y_train, test_size=0.15, stratify=y_train, random_state=42)
print("train:", x_train.shape, "val:", x_val.shape, "test:", x_test.shape)

model = keras.Sequential([
    keras.Input(shape=(8, 8, 1)),
    layers.Conv2D(32, 3, padding="same", activation="relu"),
    layers.MaxPooling2D(2),
    layers.Conv2D(64, 3, padding="same", activation="relu"),
    layers.MaxPooling2D(2),
    layers.Flatten(),
    layers.Dropout(0.25),
    layers.Dense(64, activation="relu"),
    layers.Dense(10),
], name="digits_cnn")
model.summary()

model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=1e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)

history = model.fit(
    x_train, y_train,
    validation_data=(x_val, y_val),
    batch_size=32,
    epochs=20,
    verbose=2,
)

test_loss, test_acc = model.evaluate(x_test, y_test, verbose=0)
print(f"Test loss: {test_loss:.4f}")
print(f"Test accuracy: {test_acc:.4f}")

pred = model.predict(x_test, verbose=0).argmax(axis=1)
for d in range(10):
    mask = y_test == d
    print(f"  digit {d}: {np.mean(pred[mask] == d):.3f}")
