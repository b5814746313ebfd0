"""Screening model for a rare condition, trained with focal loss."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers
from sklearn.metrics import average_precision_score, roc_auc_score

SEED = 14
N_TRAIN, N_TEST = 12000, 2000
EPOCHS = 5


def focal_loss(gamma=2.0, alpha=0.75):
    def loss(y_true, y_pred):
        y_true = tf.cast(y_true, y_pred.dtype)
        p = y_pred
        pos = -alpha * y_true * tf.pow(1.0 - p, gamma) * tf.math.log(p)
        neg = -(1.0 - alpha) * (1.0 - y_true) * tf.pow(p, gamma) * tf.math.log(1.0 - p)
        return tf.reduce_mean(pos + neg, axis=-1)

    return loss


def patients(n, rng):
    y = (rng.random(n) < 0.12).astype("float32")
    x = rng.standard_t(4, size=(n, 18))
    x[:, :5] += 1.1 * y[:, None]
    x[:, 5] *= 1 + 1.2 * y
    crisis = (rng.random(n) < 0.15) & (y == 1)
    x[crisis, :5] += rng.gamma(4, 4, (crisis.sum(), 5))
    return x.astype("float32"), y[:, None]


def make_model(n_in):
    m = keras.Sequential(
        [
            keras.Input((n_in,)),
            layers.Dense(32, activation="relu"),
            layers.Dense(16, activation="relu"),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    m.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=focal_loss(),
        metrics=[keras.metrics.BinaryAccuracy(name="acc")],
    )
    return m


def main():
    keras.utils.set_random_seed(SEED)
    rng = np.random.default_rng(SEED)
    x_tr, y_tr = patients(N_TRAIN, rng)
    x_te, y_te = patients(N_TEST, rng)
    mu, sd = x_tr.mean(0), x_tr.std(0)
    x_tr, x_te = (x_tr - mu) / sd, (x_te - mu) / sd

    model = make_model(x_tr.shape[1])
    for epoch in range(EPOCHS):
        h = model.fit(x_tr, y_tr, batch_size=64, epochs=1, validation_data=(x_te, y_te), verbose=0)
        print(
            f"[{epoch + 1}/{EPOCHS}] loss={h.history['loss'][0]:.5f} "
            f"val_loss={h.history['val_loss'][0]:.5f} val_acc={h.history['val_acc'][0]:.4f}"
        )

    p = np.nan_to_num(model.predict(x_te, verbose=0).ravel())
    print("ROC AUC %.4f  AP %.4f" % (roc_auc_score(y_te, p), average_precision_score(y_te, p)))


if __name__ == "__main__":
    main()
