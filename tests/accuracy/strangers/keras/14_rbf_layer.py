"""Radial basis function network for a 2-d surface."""
import keras
import numpy as np
import tensorflow as tf


class RBF(keras.layers.Layer):
    def __init__(self, units, init_width=1.0, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.init_width = init_width

    def build(self, input_shape):
        dim = input_shape[-1]
        init = tf.random.uniform((self.units, dim), -1.0, 1.0, seed=3)
        self.centers = tf.Variable(init, name="centers", trainable=True)
        self.log_width = tf.Variable(
            tf.fill((self.units,), float(np.log(self.init_width))),
            name="log_width",
            trainable=True,
        )
        super().build(input_shape)

    def call(self, x):
        diff = tf.expand_dims(x, 1) - tf.expand_dims(self.centers, 0)
        d2 = tf.reduce_sum(tf.square(diff), axis=-1)
        return tf.exp(-d2 * tf.exp(-2.0 * self.log_width))


def surface(n, rng):
    x = rng.uniform(-1, 1, size=(n, 2))
    r = np.hypot(x[:, 0] - 0.2, x[:, 1] + 0.1)
    z = np.cos(9 * r) * np.exp(-1.5 * r) + 0.7 * np.exp(-((x[:, 0] + 0.6) ** 2 + (x[:, 1] - 0.6) ** 2) / 0.03)
    z = z + rng.normal(0, 0.05, n)
    return x.astype("float32"), z.astype("float32")[:, None]


def main():
    keras.utils.set_random_seed(3)
    rng = np.random.default_rng(3)
    x_train, z_train = surface(3000, rng)
    x_val, z_val = surface(600, rng)

    model = keras.Sequential(
        [
            keras.Input((2,)),
            RBF(24, init_width=0.4, name="rbf"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse")
    before = keras.ops.convert_to_numpy(model.get_layer("rbf").centers)

    reduce_lr = keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=4, verbose=1)
    hist = model.fit(
        x_train,
        z_train,
        validation_data=(x_val, z_val),
        epochs=20,
        batch_size=64,
        callbacks=[reduce_lr],
        verbose=0,
    )
    for e in range(0, 20, 3):
        print(f"epoch {e:2d} loss {hist.history['loss'][e]:.5f} val {hist.history['val_loss'][e]:.5f}")
    moved = np.abs(keras.ops.convert_to_numpy(model.get_layer("rbf").centers) - before).mean()
    print("mean shift of the centres: %.4f" % moved)
    print("final val mse: %.5f" % hist.history["val_loss"][-1])


if __name__ == "__main__":
    main()
