"""Hourly load forecast with a GRU; small batches, gradients summed over several of them."""
import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(31)
rng = np.random.default_rng(31)

HOURS, WINDOW, ACCUM, BATCH, EPOCHS = 24 * 120, 48, 4, 16, 6

t = np.arange(HOURS)
load = (10 + 3 * np.sin(2 * np.pi * t / 24) + 1.2 * np.sin(4 * np.pi * t / 24 + 1)
        + 1.5 * ((t // 24) % 7 < 5))
drift = np.zeros(HOURS)
for i in range(1, HOURS):
    drift[i] = 0.97 * drift[i - 1] + rng.normal(0, 0.2)
load = load + drift

split = int(HOURS * 0.8)
mean, std = load[:split].mean(), load[:split].std()
series = ((load - mean) / std).astype("float32")


def windows(s):
    x = np.stack([s[i:i + WINDOW] for i in range(len(s) - WINDOW)])[..., None]
    return x, s[WINDOW:, None]


x_train, y_train = windows(series[:split])
x_test, y_test = windows(series[split - WINDOW:])
train_ds = (tf.data.Dataset.from_tensor_slices((x_train, y_train))
            .shuffle(len(x_train), seed=1).batch(BATCH, drop_remainder=True))

model = keras.Sequential([
    keras.Input((WINDOW, 1)),
    layers.GRU(24),
    layers.Dense(16, activation="relu"),
    layers.Dense(1),
])
optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
loss_fn = keras.losses.MeanSquaredError()
accumulated = [tf.Variable(tf.zeros(v.shape), trainable=False)
               for v in model.trainable_variables]
optimizer.build(model.trainable_variables)


@tf.function
def accumulate(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    for acc, g in zip(accumulated, grads):
        acc.assign_add(g / ACCUM)
    return loss


@tf.function
def update():
    grads, _ = tf.clip_by_global_norm([a.value() for a in accumulated], 1.0)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))


for epoch in range(EPOCHS):
    running = keras.metrics.Mean()
    for step, (xb, yb) in enumerate(train_ds):
        running.update_state(accumulate(xb, yb))
        if (step + 1) % ACCUM == 0:
            update()
    val = loss_fn(y_test, model(x_test, training=False))
    print(f"epoch {epoch + 1}: train mse {float(running.result()):.4f}  test mse {float(val):.4f}")

pred = model.predict(x_test, verbose=0)
print("test MAE (load units): %.3f" % (std * np.abs(pred - y_test).mean()))
print("naive MAE (load units): %.3f" % (std * np.abs(x_test[:, -1] - y_test).mean()))
