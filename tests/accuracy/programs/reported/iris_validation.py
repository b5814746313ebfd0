"""Trains a Keras network on the iris table, with a part held back for validation."""

import keras
from keras import layers
from sklearn.datasets import load_iris

keras.utils.set_random_seed(10)


def build():
    inputs = keras.Input((4,))
    x = layers.Dense(16, activation="relu")(inputs)
    x = layers.Dense(16, activation="relu")(x)
    outputs = layers.Dense(3, activation="softmax")(x)
    return keras.Model(inputs, outputs)


iris = load_iris()
x = (iris.data - iris.data.mean(axis=0)) / iris.data.std(axis=0)
y = keras.utils.to_categorical(iris.target)

model = build()
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, validation_split=0.3, shuffle=True, batch_size=10, epochs=10, verbose=0).history
for epoch in (0, 4, 8):
    print(
        f"epoch {epoch} loss {history['loss'][epoch]:.3f} val_loss {history['val_loss'][epoch]:.3f} "
        f"val_accuracy {history['val_accuracy'][epoch]:.3f}"
    )
print(f"final val_accuracy {history['val_accuracy'][-1]:.3f}")
