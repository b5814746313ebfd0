import argparse

import keras
import numpy as np
import tensorflow as tf
from keras import layers


def get_args():
    p = argparse.ArgumentParser(description="Energy demand of buildings")
    p.add_argument("--rows", type=int, default=1200)
    p.add_argument("--max-epochs", type=int, default=40)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--patience", type=int, default=5)
    return p.parse_args()


def buildings(n, rng):
    x = rng.normal(size=(n, 10)).astype("float32")
    y = (
        1.2 * x[:, 0]
        - 0.8 * x[:, 1]
        + np.sin(1.5 * x[:, 2])
        + 0.6 * x[:, 3] * x[:, 4]
        + 0.3 * (x[:, 5] ** 2 - 1)
    )
    y = y + rng.normal(0, 0.7, n)
    return x, y.astype("float32")[:, None]


def split_dataset(x, y, batch, seed=5):
    n = len(x)
    n_train = int(0.75 * n)
    ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(n, seed=seed)
    train = ds.take(n_train).shuffle(n_train, seed=seed + 1).batch(batch).prefetch(1)
    val = ds.skip(n_train).batch(batch).prefetch(1)
    return train, val


def network(n_features):
    return keras.Sequential(
        [
            keras.Input((n_features,)),
            layers.Dense(256, activation="relu"),
            layers.Dense(128, activation="relu"),
            layers.Dense(1),
        ]
    )


def main():
    args = get_args()
    keras.utils.set_random_seed(5)
    rng = np.random.default_rng(6)
    x, y = buildings(args.rows, rng)
    x_test, y_test = buildings(1500, rng)

    train, val = split_dataset(x, y, args.batch)
    model = network(x.shape[1])
    model.compile(optimizer=keras.optimizers.Adam(args.lr), loss="mse", metrics=["mae"])

    stopper = keras.callbacks.EarlyStopping(
        monitor="val_loss", patience=args.patience, restore_best_weights=True
    )
    hist = model.fit(
        train, validation_data=val, epochs=args.max_epochs, callbacks=[stopper], verbose=0
    )
    h = hist.history
    for e in range(len(h["loss"])):
        if e % 4 == 0 or e == len(h["loss"]) - 1:
            print(f"epoch {e:3d}  loss {h['loss'][e]:.4f}  val_loss {h['val_loss'][e]:.4f}")
    print(f"epochs run: {len(h['loss'])}  best val mse: {min(h['val_loss']):.4f}")
    mse, mae = model.evaluate(x_test, y_test, verbose=0)
    print(f"test mse: {mse:.4f}  test mae: {mae:.4f}")


if __name__ == "__main__":
    main()
