import numpy as np
import keras
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(21)


def load_source():
    d = load_digits()
    x = d.images.astype("float32")[..., None] / 16.0
    return train_test_split(x, d.target, test_size=0.5, stratify=d.target, random_state=0)


def to_scanner(x, rng):
    """The second scanner gives inverted, blurred and rotated pages."""
    x = 1.0 - np.rot90(x, axes=(1, 2))
    x = 0.6 * x + 0.2 * np.roll(x, 1, axis=1) + 0.2 * np.roll(x, 1, axis=2)
    return (x + rng.normal(0, 0.05, x.shape)).astype("float32")


def make_base():
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.GlobalAveragePooling2D(),
        ],
        name="base",
    )


def with_head(base, name):
    inp = keras.Input((8, 8, 1))
    x = base(inp)
    out = layers.Dense(10, activation="softmax", name=name + "_head")(x)
    return keras.Model(inp, out, name=name)


x_src, x_rest, y_src, y_rest = load_source()
x_tgt = to_scanner(x_rest, np.random.default_rng(5))
x_tgt, x_test, y_tgt, y_test = train_test_split(
    x_tgt, y_rest, test_size=400, stratify=y_rest, random_state=1
)

# ---- source task
base = make_base()
source = with_head(base, "source")
source.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
h = source.fit(x_src, y_src, epochs=12, batch_size=32, verbose=0)
print("source accuracy", round(h.history["accuracy"][-1], 4))

# ---- phase 1: only the new head
base.trainable = False
model = with_head(base, "target")
model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_tgt, y_tgt, validation_data=(x_test, y_test), epochs=8, batch_size=32, verbose=2)
print("after phase 1:", model.evaluate(x_test, y_test, verbose=0))

# ---- phase 2: the whole network
base.trainable = True
model.fit(x_tgt, y_tgt, validation_data=(x_test, y_test), epochs=16, batch_size=32, verbose=2)

loss, acc = model.evaluate(x_test, y_test, verbose=0)
print(f"after phase 2: loss {loss:.4f} accuracy {acc:.4f}")
