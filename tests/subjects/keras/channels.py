"""Train a Keras model one step, some of whose channels are dead and some saturated. It knows nothing of the agent.

Arguments: ``first`` for images with their channels first, where the backend computes those.
"""

import sys

import numpy as np

try:
    import keras
except ImportError:
    from tensorflow import keras

layers = keras.layers
form = "channels_first" if "first" in sys.argv[1:] else "channels_last"
keras.utils.set_random_seed(1)
shape = (3, 9, 9) if form == "channels_first" else (9, 9, 3)
inputs = keras.Input(shape)
x = layers.Conv2D(8, 3, activation="relu", data_format=form, name="conv")(inputs)
x = layers.ReLU(name="act")(x)
x = layers.BatchNormalization(axis=1 if form == "channels_first" else -1, name="norm")(x)
x = layers.GlobalAveragePooling2D(data_format=form, name="pool")(x)
x = layers.Dense(5, activation="sigmoid", name="gates")(x)
model = keras.Model(inputs, layers.Dense(2, name="head")(x))
kernel, bias = model.get_layer("conv").get_weights()
bias[:3] = -100
model.get_layer("conv").set_weights([kernel, bias])
kernel, bias = model.get_layer("gates").get_weights()
bias[:2] = 30, -12
model.get_layer("gates").set_weights([kernel, bias])
model.compile(optimizer="sgd", loss="mse")
rng = np.random.default_rng(0)
model.train_on_batch(rng.normal(size=(4, *shape)).astype("float32"), rng.normal(size=(4, 2)).astype("float32"))
