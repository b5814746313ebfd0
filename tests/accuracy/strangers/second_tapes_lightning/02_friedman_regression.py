import os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_squared_error, r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

SEED = 123
tf.keras.utils.set_random_seed(SEED)


def load_data():
    X, y = make_friedman1(n_samples=4000, n_features=10, noise=1.0, random_state=SEED)
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.2, random_state=SEED)
    X_tr, X_val, y_tr, y_val = train_test_split(X_tr, y_tr, test_size=0.15, random_state=SEED)
    scaler = StandardScaler().fit(X_tr)
    y_mean, y_std = y_tr.mean(), y_tr.std()
    pack = lambda a, b: (scaler.transform(a).astype("float32"),
                         ((b - y_mean) / y_std).astype("float32"))
    return pack(X_tr, y_tr), pack(X_val, y_val), pack(X_te, y_te)


def build_model(n_features):
    inputs = tf.keras.Input(shape=(n_features,))
    x = tf.keras.layers.Dense(32, activation="relu")(inputs)
    x = tf.keras.layers.Dense(32, activation="relu")(x)
    outputs = tf.keras.layers.Dense(1)(x)
    return tf.keras.Model(inputs, outputs)


(train_x, train_y), (val_x, val_y), (test_x, test_y) = load_data()
train_ds = (tf.data.Dataset.from_tensor_slices((train_x, train_y))
            .shuffle(len(train_x), seed=SEED)
            .batch(64)
            .prefetch(tf.data.AUTOTUNE))

model = build_model(train_x.shape[1])
optimizer = tf.keras.optimizers.Adam(learning_rate=1e-3)
loss_metric = tf.keras.metrics.Mean()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        y_pred = model(x, training=True)
        loss = tf.reduce_mean(tf.square(y - y_pred))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def predict(x):
    return model(x, training=False).numpy().ravel()


for epoch in range(20):
    loss_metric.reset_state()
    for xb, yb in train_ds:
        loss_metric.update_state(train_step(xb, yb))
    val_rmse = np.sqrt(mean_squared_error(val_y, predict(val_x)))
    print(f"Epoch {epoch + 1:02d}/20 - loss: {loss_metric.result():.4f} - val_rmse: {val_rmse:.4f}")

pred = predict(test_x)
print(f"Test RMSE: {np.sqrt(mean_squared_error(test_y, pred)):.4f}")
print(f"Test R2:   {r2_score(test_y, pred):.4f}")
