import keras
import numpy as np
import tensorflow as tf
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


class PriceModel(keras.Model):
    def __init__(self, width=64):
        super().__init__()
        self.d1 = keras.layers.Dense(width, activation="relu")
        self.d2 = keras.layers.Dense(width // 2, activation="relu")
        self.out = keras.layers.Dense(1)
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.mae_tracker = keras.metrics.MeanAbsoluteError(name="mae")

    @property
    def metrics(self):
        return [self.loss_tracker, self.mae_tracker]

    def call(self, x, training=False):
        return self.out(self.d2(self.d1(x)))

    def compute_mse(self, y, y_pred):
        return tf.reduce_mean(tf.square(y - y_pred))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_mse(y, y_pred)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        self.mae_tracker.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        x, y = data
        y_pred = self(x, training=False)
        self.loss_tracker.update_state(self.compute_mse(y, y_pred))
        self.mae_tracker.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


def houses(n, rng):
    area = rng.gamma(8, 14, n)
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.7, n)), 1, 9)
    age = rng.uniform(0, 90, n)
    dist = rng.exponential(6, n)
    garden = rng.integers(0, 2, n)
    price = 2.6 * area + 12 * rooms - 0.6 * age + 60 * garden + 220 * np.exp(-dist / 5)
    price = price + rng.normal(0, 20, n)
    return np.stack([area, rooms, age, dist, garden], 1), price


keras.utils.set_random_seed(31)
X, price = houses(3000, np.random.default_rng(31))
X_tr, X_te, p_tr, p_te = train_test_split(X, price, test_size=0.2, random_state=31)

xs = StandardScaler().fit(X_tr)
mu, sd = p_tr.mean(), p_tr.std()
X_tr, X_te = xs.transform(X_tr).astype("float32"), xs.transform(X_te).astype("float32")
y_tr, y_te = ((p_tr - mu) / sd).astype("float32"), ((p_te - mu) / sd).astype("float32")

train = tf.data.Dataset.from_tensor_slices((X_tr, y_tr)).shuffle(2400).batch(32).prefetch(1)
test = tf.data.Dataset.from_tensor_slices((X_te, y_te)).batch(128)

model = PriceModel()
model.compile(optimizer=keras.optimizers.Adam(1e-3))
model.fit(train, validation_data=test, epochs=6, verbose=2)

pred = model.predict(X_te, verbose=0)[:, 0] * sd + mu
print("first predictions:", pred[:6].round(1))
print("first prices:     ", p_te[:6].round(1))
print("test RMSE: %.2f (thousand)" % np.sqrt(np.mean((pred - p_te) ** 2)))
