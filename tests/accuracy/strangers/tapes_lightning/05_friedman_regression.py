# regression on Friedman #1, custom loop
import tensorflow as tf
from tensorflow.keras import layers, Sequential, Input, optimizers
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

tf.keras.utils.set_random_seed(11)

X, y = make_friedman1(n_samples=3000, n_features=10, noise=1.0, random_state=11)
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.2, random_state=11)

scaler = StandardScaler().fit(X_tr)
X_tr = scaler.transform(X_tr).astype("float32")
X_va = scaler.transform(X_va).astype("float32")
y_mean, y_std = y_tr.mean(), y_tr.std()
t_tr = ((y_tr - y_mean) / y_std).astype("float32")

model = Sequential([
    Input(shape=(10,)),
    layers.Dense(64, activation="relu", kernel_initializer="he_uniform"),
    layers.Dense(32, activation="relu", kernel_initializer="he_uniform"),
    layers.Dense(1),
])
opt = optimizers.Adam(learning_rate=1e-3)

batches = tf.data.Dataset.from_tensor_slices((X_tr, t_tr)).shuffle(2400).batch(64)


@tf.function
def train_on_batch(xb, yb):
    with tf.GradientTape() as tape:
        pred = model(xb, training=True)
        loss = tf.reduce_mean(tf.square(yb - pred))
    g = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(g, model.trainable_variables))
    return loss


def predict(features):
    out = model(features, training=False).numpy().ravel()
    return out * y_std + y_mean


for epoch in range(12):
    running = 0.0
    for i, (xb, yb) in enumerate(batches):
        running += float(train_on_batch(xb, yb))
    print("epoch %d: train mse %.4f, val r2 %.4f" % (epoch + 1, running / (i + 1), r2_score(y_va, predict(X_va))))

print("final val r2: %.4f" % r2_score(y_va, predict(X_va)))
