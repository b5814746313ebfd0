import numpy as np
import keras
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 7
BATCH_SIZE = 32
EPOCHS = 10
NUM_CLASSES = 10

keras.utils.set_random_seed(SEED)

# ---------------------------------------------------------------- data
digits = load_digits()
images = digits.images.astype("float32") / 16.0
images = images[..., np.newaxis]
labels = digits.target.astype("int32")

x_train, x_test, y_train, y_test = train_test_split(
    images, labels, test_size=0.2, stratify=labels, random_state=SEED
)
x_train, x_val, y_train, y_val = train_test_split(
    x_train, y_train, test_size=0.15, stratify=y_train, random_state=SEED
)
print("train", x_train.shape, "val", x_val.shape, "test", x_test.shape)

# ---------------------------------------------------------------- model
model = keras.Sequential(
    [
        keras.Input(shape=(8, 8, 1)),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(2),
        layers.Dropout(0.25),
        layers.Flatten(),
        layers.Dense(64, activation="relu"),
        layers.Dense(NUM_CLASSES),
    ]
)
model.summary()

model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=1e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)

history = model.fit(
    x_train,
    y_train,
    batch_size=BATCH_SIZE,
    epochs=EPOCHS,
    validation_data=(x_val, y_val),
    verbose=2,
)

loss, acc = model.evaluate(x_test, y_test, verbose=0)
print(f"test loss {loss:.4f}  test accuracy {acc:.4f}")

pred = model.predict(x_test, verbose=0).argmax(axis=1)
for d in range(NUM_CLASSES):
    sel = y_test == d
    print(f"digit {d}: {np.mean(pred[sel] == d):.3f} of {sel.sum()}")
