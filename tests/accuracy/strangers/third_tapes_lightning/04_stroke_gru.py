# Recognise pen strokes of varying length with a recurrent network.
import numpy as np
import tensorflow as tf

np.random.seed(11)
tf.keras.utils.set_random_seed(11)

MAX_LEN = 120
CLASSES = ["cw circle", "ccw circle", "zigzag", "spiral", "line"]


def make_stroke(kind):
    n = np.random.randint(8, 40) if np.random.rand() < 0.8 else np.random.randint(40, MAX_LEN)
    s = np.linspace(0, 1, n)
    a0 = np.random.rand() * 2 * np.pi
    if kind == 0:
        xy = np.stack([np.cos(a0 - 2 * np.pi * s), np.sin(a0 - 2 * np.pi * s)], 1)
    elif kind == 1:
        xy = np.stack([np.cos(a0 + 2 * np.pi * s), np.sin(a0 + 2 * np.pi * s)], 1)
    elif kind == 2:
        xy = np.stack([2 * s - 1, 0.5 * np.sign(np.sin(8 * np.pi * s + a0))], 1)
    elif kind == 3:
        xy = s[:, None] * np.stack([np.cos(a0 + 4 * np.pi * s), np.sin(a0 + 4 * np.pi * s)], 1)
    else:
        xy = np.outer(2 * s - 1, [np.cos(a0), np.sin(a0)])
    xy = xy * np.random.uniform(60, 140) + [400, 300] + 12 * np.random.randn(n, 2)
    pressure = 120 + 30 * np.sin(np.pi * s)[:, None] + 10 * np.random.randn(n, 1)
    return np.concatenate([xy, pressure], 1)


def make_set(n):
    y = np.random.randint(0, len(CLASSES), n)
    return [make_stroke(k) for k in y], y


def pad(strokes):
    out = np.zeros((len(strokes), MAX_LEN, 3), "float32")
    for row, s in zip(out, strokes):
        row[: len(s)] = s
    return out


train_strokes, y_train = make_set(800)
test_strokes, y_test = make_set(400)

flat = np.concatenate(train_strokes)
mu, sigma = flat.mean(0), flat.std(0)

x_train = pad(train_strokes)
x_test = pad(test_strokes)
x_train = ((x_train - mu) / sigma).astype("float32")
x_test = ((x_test - mu) / sigma).astype("float32")

model = tf.keras.Sequential([
    tf.keras.layers.Input((MAX_LEN, 3)),
    tf.keras.layers.Masking(mask_value=0.0),
    tf.keras.layers.GRU(24),
    tf.keras.layers.Dense(len(CLASSES)),
])
opt = tf.keras.optimizers.Adam(2e-3)
ce = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = ce(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    grads, norm = tf.clip_by_global_norm(grads, 1.0)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    return loss


batches = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(800).batch(32)
for epoch in range(8):
    mean_loss = np.mean([train_step(x, y).numpy() for x, y in batches])
    acc = np.mean(model(x_test).numpy().argmax(1) == y_test)
    print(f"[{epoch + 1:02d}] loss={mean_loss:.4f} test_acc={acc:.4f}")
