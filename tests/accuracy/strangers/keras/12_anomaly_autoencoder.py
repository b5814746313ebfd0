"""Autoencoder on machine sensors; reconstruction error as anomaly score."""
import keras
import numpy as np
from keras import layers
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler


class SensorData:
    def __init__(self, n_sensors=24, n_factors=4, seed=0):
        self.rng = np.random.default_rng(seed)
        self.n_sensors = n_sensors
        self.n_factors = n_factors
        self.mix = self.rng.normal(size=(n_factors, n_sensors))
        self.offset = self.rng.uniform(10, 90, n_sensors)

    def normal(self, n):
        f = self.rng.normal(size=(n, self.n_factors))
        noise = self.rng.normal(0, 0.3, (n, self.n_sensors))
        return self.offset + 4 * (f @ self.mix + noise)

    def broken(self, n):
        x = self.normal(n)
        for row in x:
            bad = self.rng.choice(self.n_sensors, 3, replace=False)
            row[bad] += self.rng.choice([-1, 1], 3) * self.rng.uniform(4, 8, 3)
        return x


class Detector:
    def __init__(self, dim, code=4):
        inp = keras.Input((dim,))
        x = layers.Dense(32, activation="relu")(inp)
        x = layers.Dense(code, name="code")(x)
        x = layers.Dense(32, activation="relu")(x)
        out = layers.Dense(dim, activation="sigmoid")(x)
        self.net = keras.Model(inp, out)
        self.net.compile(optimizer=keras.optimizers.Adam(2e-3), loss="mse")

    def fit(self, x, x_val, epochs):
        return self.net.fit(
            x,
            x,
            validation_data=(x_val, x_val),
            epochs=epochs,
            batch_size=64,
            shuffle=True,
            verbose=2,
        )

    def score(self, x):
        return np.mean((self.net.predict(x, verbose=0) - x) ** 2, axis=1)


if __name__ == "__main__":
    keras.utils.set_random_seed(6)
    source = SensorData()
    train, val = source.normal(2500), source.normal(500)
    test = np.vstack([source.normal(500), source.broken(100)])
    label = np.r_[np.zeros(500), np.ones(100)]

    scaler = StandardScaler().fit(train)
    train, val, test = (scaler.transform(a).astype("float32") for a in (train, val, test))

    det = Detector(train.shape[1])
    det.fit(train, val, epochs=15)

    s = det.score(test)
    print("mean score normal %.4f, broken %.4f" % (s[label == 0].mean(), s[label == 1].mean()))
    print("detection AUC %.4f" % roc_auc_score(label, s))
