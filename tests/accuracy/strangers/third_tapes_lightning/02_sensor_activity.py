"""Activity recognition from body-worn sensors with a small 1-D CNN."""
import numpy as np
import tensorflow as tf

SEED = 3
rng = np.random.default_rng(SEED)
tf.random.set_seed(SEED)

N_CHANNELS, N_STEPS, N_CLASSES = 6, 96, 6
ACTIVITIES = ["walk", "run", "stairs_up", "stairs_down", "cycle", "row"]

# each activity has its own phase shift and strength between the channels
phase = rng.uniform(0, 2 * np.pi, (N_CLASSES, N_CHANNELS))
gain = rng.uniform(0.7, 1.3, (N_CLASSES, N_CHANNELS))


def record(n):
    """Recordings as the device stores them: (recording, channel, time)."""
    label = rng.integers(0, N_CLASSES, n)
    t = np.arange(N_STEPS) / N_STEPS
    freq = rng.uniform(4, 8, (n, 1, 1))
    start = rng.uniform(0, 2 * np.pi, (n, 1, 1))
    wave = np.sin(2 * np.pi * freq * t + start + phase[label][:, :, None])
    signal = gain[label][:, :, None] * wave + 0.6 * rng.normal(size=(n, N_CHANNELS, N_STEPS))
    return signal.astype("float32"), label.astype("int32")


train_x, train_y = record(1500)
test_x, test_y = record(600)

mean = train_x.mean(axis=(0, 2), keepdims=True)
std = train_x.std(axis=(0, 2), keepdims=True)
train_x = (train_x - mean) / std
test_x = (test_x - mean) / std

# Conv1D wants (batch, time, channel)
train_x = train_x.reshape(-1, N_STEPS, N_CHANNELS)
test_x = test_x.reshape(-1, N_STEPS, N_CHANNELS)


class ActivityNet(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.c1 = tf.keras.layers.Conv1D(24, 5, padding="same", activation="relu")
        self.pool = tf.keras.layers.MaxPooling1D(2)
        self.c2 = tf.keras.layers.Conv1D(32, 5, padding="same", activation="relu")
        self.gap = tf.keras.layers.GlobalAveragePooling1D()
        self.drop = tf.keras.layers.Dropout(0.2)
        self.out = tf.keras.layers.Dense(N_CLASSES)

    def call(self, x, training=False):
        x = self.pool(self.c1(x))
        x = self.gap(self.c2(x))
        return self.out(self.drop(x, training=training))


model = ActivityNet()
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
opt = tf.keras.optimizers.Adam(2e-3)
train_acc = tf.keras.metrics.SparseCategoricalAccuracy()
train_loss = tf.keras.metrics.Mean()

ds = tf.data.Dataset.from_tensor_slices((train_x, train_y)).shuffle(1500, seed=SEED).batch(50)


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_fn(y, logits)
    g = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(g, model.trainable_variables))
    train_loss.update_state(loss)
    train_acc.update_state(y, logits)


for epoch in range(15):
    train_loss.reset_state()
    train_acc.reset_state()
    for x, y in ds:
        step(x, y)
    pred = tf.argmax(model(test_x), axis=-1).numpy()
    print(f"epoch {epoch:2d} loss {train_loss.result():.3f} acc {train_acc.result():.3f} "
          f"test acc {(pred == test_y).mean():.3f}")

for c, name in enumerate(ACTIVITIES):
    print(f"{name:12s} {(pred[test_y == c] == c).mean():.2f}")
