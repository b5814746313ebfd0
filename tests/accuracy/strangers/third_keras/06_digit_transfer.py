"""Pretrain a CNN on digits 0 and 1, then transfer it to a few examples of the others."""
import numpy as np
import keras
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(42)

digits = load_digits()
X = (digits.images / 16.0).astype("float32")[..., np.newaxis]
y = digits.target

low, high = y < 2, y >= 2
X_src, y_src = X[low], y[low]
X_new, X_val, y_new, y_val = train_test_split(
    X[high], y[high] - 2, train_size=320, stratify=y[high], random_state=0)


def build_base():
    inp = keras.Input((8, 8, 1))
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(inp)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inp, x, name="base")


# --- source task -----------------------------------------------------------
base = build_base()
source_model = keras.Sequential([base, layers.Dense(2, activation="softmax")])
source_model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
source_model.fit(X_src, y_src, epochs=10, batch_size=32, verbose=0)
print("source accuracy: %.3f" % source_model.evaluate(X_src, y_src, verbose=0)[1])

# --- target task, stage 1: only the new head ---------------------------------
base.trainable = False
inputs = keras.Input((8, 8, 1))
x = base(inputs)
x = layers.Dense(32, activation="relu")(x)
outputs = layers.Dense(8, activation="softmax")(x)
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(X_new, y_new, epochs=20, batch_size=32, verbose=0)
print("after head training: %.3f" % model.evaluate(X_val, y_val, verbose=0)[1])

# --- stage 2: fine-tune the whole network -------------------------------------
base.trainable = True
model.optimizer.learning_rate = 2e-3
history = model.fit(X_new, y_new, epochs=80, batch_size=32,
                    validation_data=(X_val, y_val), verbose=0)
for e in range(9, 80, 10):
    print("epoch %d  loss %.4f  val_accuracy %.4f" % (
        e + 1, history.history["loss"][e], history.history["val_accuracy"][e]))
print("after fine-tuning: %.3f" % model.evaluate(X_val, y_val, verbose=0)[1])
