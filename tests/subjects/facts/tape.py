"""A loop with a GradientTape that has all that facts are saved of."""

import numpy as np
import tensorflow as tf

keras = tf.keras
keras.utils.set_random_seed(0)
layers = keras.layers
X = np.random.rand(80, 4).astype("float32")
Y = np.arange(80) % 3
# The last of them are padding.
WORDS = tf.constant([[3, 1, 2, 1, 0, 0], [4, 4, 1, 0, 0, 0], [2, 3, 0, 0, 0, 0], [1, 2, 3, 4, 1, 2]])
IMAGES = tf.random.uniform((4, 16, 16, 1))

model = keras.Sequential(
    [
        *(layers.Input((4,)), layers.Dense(5), layers.BatchNormalization(), layers.Dropout(0.2)),
        layers.Dense(3, "softmax"),
    ]
)
bounded = keras.Sequential([layers.Input((4,)), layers.Dense(1, "sigmoid")])
tokens = keras.Sequential([layers.Input((6,), dtype="int32"), layers.Embedding(5, 3), layers.LSTM(2), layers.Dense(1)])
pixels = keras.Sequential([layers.Input((16, 16, 1)), layers.Conv2D(1, 3, padding="same")])
recordings = keras.Sequential([layers.Input((4, 1)), layers.LSTM(2), layers.Dense(1)])
models = (model, bounded, tokens, recordings, pixels)
variables = [variable for one in models for variable in one.trainable_variables]
of_numbers = keras.losses.MeanSquaredError()
of_pixels = keras.losses.BinaryCrossentropy(from_logits=True)
criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
momentum = keras.optimizers.SGD(0.1, momentum=0.9)
scaled = keras.mixed_precision.LossScaleOptimizer(momentum)
optimizers = [keras.optimizers.AdamW(1e-3), scaled]
for optimizer in optimizers:
    optimizer.build(variables)

share = 0.5


@tf.function
def step(x, y):
    with tf.GradientTape(persistent=True) as tape:
        classes = model(x, training=True)
        loss = criterion(y, classes) + of_numbers(tf.cast(y[:, None], tf.float32), bounded(x))
        loss += criterion(tf.stack([y, y], 1), tf.stack([classes, classes], 1))
        loss += tf.reduce_mean(tokens(WORDS) ** 2) + tf.reduce_mean(recordings(x[..., None]) ** 2)
        loss += share * of_pixels(tf.cast(IMAGES > 0.5, tf.float32), pixels(IMAGES))
        whole = scaled.scale_loss(loss) if hasattr(scaled, "scale_loss") else scaled.get_scaled_loss(loss)
    gradients = tape.gradient(whole, variables)
    if not hasattr(scaled, "scale_loss"):
        gradients = scaled.get_unscaled_gradients(gradients)
    for optimizer in optimizers:
        optimizer.apply_gradients(zip(gradients, variables, strict=True))


for number in range(8):
    rows = slice(10 * number, 10 * number + 10)
    step(tf.constant(X[rows]), tf.constant(Y[rows]))
