import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tensorflow import keras
from tensorflow.keras import layers, metrics

keras.utils.set_random_seed(2)

X, y = load_digits(return_X_y=True)
X = (X.reshape(-1, 8, 8, 1) / 16.0).astype("float32")
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.25, random_state=2, stratify=y)

train_dataset = tf.data.Dataset.from_tensor_slices((X_train, y_train)).shuffle(2000).batch(64)
val_dataset = tf.data.Dataset.from_tensor_slices((X_val, y_val)).batch(64)

inputs = keras.Input(shape=(8, 8, 1))
x = layers.Conv2D(16, 3, activation="relu")(inputs)
x = layers.Conv2D(16, 3, activation="relu")(x)
x = layers.Flatten()(x)
x = layers.Dense(32, activation="relu")(x)
outputs = layers.Dense(10)(x)
model = keras.Model(inputs, outputs)

optimizer = keras.optimizers.Adam(1e-3)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

train_loss_metric = metrics.Mean(name="loss")
train_acc_metric = metrics.SparseCategoricalAccuracy(name="acc")
val_loss_metric = metrics.Mean(name="val_loss")
val_acc_metric = metrics.SparseCategoricalAccuracy(name="val_acc")


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_fn(y, logits)
    grads = tape.gradient(loss, model.trainable_weights)
    optimizer.apply_gradients(zip(grads, model.trainable_weights))
    train_loss_metric.update_state(loss)
    train_acc_metric.update_state(y, logits)


@tf.function
def test_step(x, y):
    logits = model(x, training=False)
    val_loss_metric.update_state(loss_fn(y, logits))
    val_acc_metric.update_state(y, logits)


EPOCHS = 12
history = {"loss": [], "acc": [], "val_loss": [], "val_acc": []}

for epoch in range(EPOCHS):
    for step, (xb, yb) in enumerate(train_dataset):
        train_step(xb, yb)

    for xb, yb in val_dataset:
        test_step(xb, yb)

    for m in (train_loss_metric, train_acc_metric, val_loss_metric, val_acc_metric):
        history[m.name].append(float(m.result()))

    print("Epoch {}/{} ({} steps)".format(epoch + 1, EPOCHS, step + 1),
          " - ".join("{}: {:.4f}".format(k, v[-1]) for k, v in history.items()))

print("best val_acc: {:.4f}".format(max(history["val_acc"])))
