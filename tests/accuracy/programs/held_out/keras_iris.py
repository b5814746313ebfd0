"""Iris species with a small Keras network and a validation curve."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
from keras import layers
from sklearn.datasets import load_iris

keras.utils.set_random_seed(12)

EPOCHS = 30
BATCH = 10


def load():
    iris = load_iris()
    x = iris.data.astype("float32")
    y = iris.target.astype("int32")
    return x, y, list(iris.target_names)


def build(x):
    norm = layers.Normalization()
    norm.adapt(x)
    inputs = keras.Input((x.shape[1],))
    h = norm(inputs)
    h = layers.Dense(32, activation="tanh")(h)
    h = layers.Dense(16, activation="tanh")(h)
    outputs = layers.Dense(3, activation="softmax")(h)
    model = keras.Model(inputs, outputs)
    model.compile(
        optimizer=keras.optimizers.Adam(5e-3),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


class Progress(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print(
            f"epoch {epoch + 1:2d}  loss {logs['loss']:.4f}  acc {logs['accuracy']:.3f}"
            f"  val_loss {logs['val_loss']:.4f}  val_acc {logs['val_accuracy']:.3f}"
        )


def main():
    x, y, names = load()
    model = build(x)
    history = model.fit(
        x,
        y,
        batch_size=BATCH,
        epochs=EPOCHS,
        validation_split=0.3,
        shuffle=True,
        verbose=0,
        callbacks=[Progress()],
    )
    best = max(history.history["val_accuracy"])
    print("classes:", ", ".join(names))
    print(f"best validation accuracy {best:.3f}")


if __name__ == "__main__":
    main()
