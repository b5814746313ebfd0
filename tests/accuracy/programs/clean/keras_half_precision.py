"""Keras in mixed bfloat16 with two inputs and two outputs, class weights for none, wine."""

import keras
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

keras.utils.set_random_seed(2)
keras.mixed_precision.set_global_policy("mixed_bfloat16")
x, y = load_wine(return_X_y=True)
x = scale(x).astype("float32")
left, right = keras.Input((6,), name="left"), keras.Input((7,), name="right")
h = keras.layers.Concatenate()([keras.layers.Dense(12, "relu")(left), keras.layers.Dense(12, "relu")(right)])
h = keras.layers.Dense(16, "relu")(h)
kind = keras.layers.Dense(3, "softmax", dtype="float32", name="kind")(h)
alcohol = keras.layers.Dense(1, dtype="float32", name="alcohol")(h)
model = keras.Model({"left": left, "right": right}, {"kind": kind, "alcohol": alcohol})
model.compile(
    keras.optimizers.Adam(5e-3),
    {"kind": "sparse_categorical_crossentropy", "alcohol": "mse"},
    loss_weights={"kind": 1.0, "alcohol": 0.3},
)
model.fit({"left": x[:, :6], "right": x[:, 6:]}, {"kind": y, "alcohol": x[:, 0]}, epochs=12, batch_size=16, verbose=0)
print(model.evaluate({"left": x[:, :6], "right": x[:, 6:]}, {"kind": y, "alcohol": x[:, 0]}, verbose=0))
