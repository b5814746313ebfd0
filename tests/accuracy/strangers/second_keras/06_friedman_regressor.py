import numpy as np
import tensorflow as tf
import keras
from keras import layers
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler


class Regressor(keras.Model):
    """MLP regressor with its own training step (global gradient clipping, loss tracking)."""

    def __init__(self, hidden=(64, 64), clip=5.0, **kwargs):
        super().__init__(**kwargs)
        self.hidden = [layers.Dense(h, activation="relu") for h in hidden]
        self.out = layers.Dense(1)
        self.clip = clip
        self.loss_tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.loss_tracker]

    def call(self, x, training=False):
        for layer in self.hidden:
            x = layer(x)
        return self.out(x)

    def compute_mse(self, y, pred):
        return tf.reduce_mean(tf.square(y - pred))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            pred = self(x, training=True)
            loss = self.compute_mse(y, pred)
        grads = tape.gradient(loss, self.trainable_variables)
        grads, _ = tf.clip_by_global_norm(grads, self.clip)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def test_step(self, data):
        x, y = data
        self.loss_tracker.update_state(self.compute_mse(y, self(x, training=False)))
        return {"loss": self.loss_tracker.result()}


def main():
    keras.utils.set_random_seed(1)
    X, y = make_friedman1(n_samples=3000, n_features=10, noise=0.5, random_state=1)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=1)
    X_train, X_val, y_train, y_val = train_test_split(X_train, y_train, test_size=0.2, random_state=1)

    xs = StandardScaler().fit(X_train)
    ys = StandardScaler().fit(y_train.reshape(-1, 1))
    prep = lambda a: xs.transform(a).astype("float32")
    prep_y = lambda a: ys.transform(a.reshape(-1, 1)).ravel().astype("float32")

    model = Regressor()
    model.compile(optimizer=keras.optimizers.Adam(1e-3))
    model.fit(prep(X_train), prep_y(y_train), batch_size=64, epochs=30,
              validation_data=(prep(X_val), prep_y(y_val)), verbose=2)

    pred = ys.inverse_transform(model.predict(prep(X_test), verbose=0)).ravel()
    print("test R2 : %.3f" % r2_score(y_test, pred))
    print("test MAE: %.3f (std of target %.3f)" % (mean_absolute_error(y_test, pred), y_test.std()))


if __name__ == "__main__":
    main()
