import numpy as np
import tensorflow as tf
from sklearn.datasets import make_classification

tf.keras.utils.set_random_seed(17)

N_POOL, N_VAL, BATCH = 800, 250, 50

X, y = make_classification(n_samples=N_POOL + 2000, n_features=40, n_informative=12, n_redundant=0,
                           n_clusters_per_class=2, flip_y=0.2, class_sep=1.0, random_state=17)
X_pool, y_pool = X[:N_POOL], y[:N_POOL].astype("float32")
X_test, y_test = X[N_POOL:], y[N_POOL:].astype("float32")


def split(dataset, n_val):
    dataset = dataset.shuffle(N_POOL, seed=17)
    val = dataset.take(n_val).batch(BATCH)
    train = dataset.skip(n_val).shuffle(N_POOL).batch(BATCH)
    return train, val


scaler = tf.keras.layers.Normalization()
pool = tf.data.Dataset.from_tensor_slices((X_pool.astype("float32"), y_pool))
train_ds, val_ds = split(pool, N_VAL)
scaler.adapt(train_ds.map(lambda a, b: a))

model = tf.keras.Sequential([
    tf.keras.Input((40,)),
    scaler,
    tf.keras.layers.Dense(96, activation="relu"),
    tf.keras.layers.Dropout(0.4),
    tf.keras.layers.Dense(1),
])
bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)
opt = tf.keras.optimizers.AdamW(1e-3, weight_decay=1e-2)
acc_metric = tf.keras.metrics.BinaryAccuracy(threshold=0.0)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = bce(y[:, None], model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def score(ds):
    acc_metric.reset_state()
    losses = []
    for x, y in ds:
        logits = model(x, training=False)
        losses.append(float(bce(y[:, None], logits)))
        acc_metric.update_state(y[:, None], logits)
    return np.mean(losses), float(acc_metric.result())


for epoch in range(1, 31):
    running = [float(train_step(x, y)) for x, y in train_ds]
    if epoch % 5 == 0:
        v_loss, v_acc = score(val_ds)
        print(f"epoch {epoch:2d}  train loss {np.mean(running):.4f}  val loss {v_loss:.4f}  val acc {v_acc:.4f}")

test_ds = tf.data.Dataset.from_tensor_slices((X_test.astype("float32"), y_test)).batch(500)
print("validation acc: %.4f" % score(val_ds)[1])
print("new data acc:   %.4f" % score(test_ds)[1])
