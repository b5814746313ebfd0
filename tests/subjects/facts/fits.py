"""Trainings of Keras that have between them all that facts are saved of."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
X = np.random.rand(80, 4).astype("float32")
Y = np.arange(80) % 3


def fit(model, loss, y, optimizer, x=X):
    model.compile(optimizer, loss, jit_compile=False)
    stopping = keras.callbacks.EarlyStopping("val_loss", mode="min")
    model.fit(x, y, batch_size=10, epochs=1, verbose=0, validation_data=(x, y), callbacks=[stopping])


def model_of(*parts):
    return keras.Sequential(
        [layers.Input((4,)), layers.Dense(5), layers.BatchNormalization(), layers.Dropout(0.2), *parts]
    )


softmax = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
fit(model_of(layers.Dense(3, "softmax")), softmax, Y, keras.optimizers.AdamW(1e-3))
scaled = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1, momentum=0.9))
fit(model_of(layers.Dense(1, "sigmoid")), "mse", Y[:, None].astype("float32"), scaled)
tokens = keras.Sequential([layers.Input((4,), dtype="int32"), layers.Embedding(9, 3), layers.Dense(3)])
fit(tokens, softmax, (9 * X).astype("int32") % 3, "sgd", (9 * X).astype("int32"))
reader = keras.Sequential([layers.Input((4,), dtype="int32"), layers.Embedding(9, 3), layers.GRU(3), layers.Dense(3)])
fit(reader, softmax, Y, "sgd", (9 * X).astype("int32"))
fit(keras.Sequential([layers.Input((4, 1)), layers.GRU(3), layers.Dense(3)]), softmax, Y, "sgd", X[..., None])
images = np.random.rand(80, 16, 16, 1).astype("float32")
pixels = keras.Sequential([layers.Input((16, 16, 1)), layers.Conv2D(1, 3, padding="same", activation="sigmoid")])
fit(pixels, "binary_crossentropy", (images > 0.5).astype("float32"), "sgd", images)
