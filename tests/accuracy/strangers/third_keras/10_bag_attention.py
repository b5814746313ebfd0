"""Multiple-instance learning: a bag is positive if it holds one of the key instances."""
import numpy as np
import keras
from keras import layers, ops

keras.utils.set_random_seed(17)
rng = np.random.default_rng(17)

BAG, FEAT = 40, 10
key = rng.normal(0, 1, FEAT)
key /= np.linalg.norm(key)


def make_bags(n):
    x = rng.normal(0, 1, (n, BAG, FEAT)).astype("float32")
    # keep ordinary instances away from the key direction
    proj = x @ key
    x -= (np.maximum(proj - 1.0, 0)[..., None] * key).astype("float32")
    y = rng.integers(0, 2, n)
    for i in np.flatnonzero(y):
        x[i, rng.integers(BAG)] = 3.0 * key + rng.normal(0, 0.5, FEAT)
    return x, y


x_train, y_train = make_bags(2000)
x_val, y_val = make_bags(400)
x_test, y_test = make_bags(1000)


class AttentionPooling(layers.Layer):
    """Weighted mean of the instances, the weights being learned (Ilse et al.)."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.v = layers.Dense(units, activation="tanh")
        self.w = layers.Dense(1, use_bias=False)

    def build(self, input_shape):
        self.v.build(input_shape)
        self.w.build((*input_shape[:-1], self.v.units))
        super().build(input_shape)

    def attention(self, h):
        scores = self.w(self.v(h))           # (batch, instances, 1)
        return ops.softmax(scores, axis=-1)

    def call(self, h):
        return ops.sum(self.attention(h) * h, axis=1)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], input_shape[-1])


bag = keras.Input((BAG, FEAT))
h = layers.Dense(16, activation="relu")(bag)
h = layers.Dense(16)(h)
pooled = AttentionPooling(16, name="pool")(h)
out = layers.Dense(1, activation="sigmoid")(pooled)
model = keras.Model(bag, out)

model.compile(keras.optimizers.Adam(2e-3), "binary_crossentropy", metrics=["accuracy"])
model.fit(
    x_train, y_train, validation_data=(x_val, y_val),
    epochs=25, batch_size=50, verbose=2,
    callbacks=[keras.callbacks.EarlyStopping(
        monitor="val_loss", patience=6, restore_best_weights=True)],
)
loss, acc = model.evaluate(x_test, y_test, verbose=0)
print("test loss %.4f  accuracy %.4f" % (loss, acc))
