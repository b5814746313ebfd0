# Breast cancer diagnosis (Wisconsin) - dense network
from tensorflow import keras
from tensorflow.keras import layers, regularizers
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

SEED = 7
EPOCHS = 40
BATCH = 16

keras.utils.set_random_seed(SEED)


def get_data():
    ds = load_breast_cancer()
    X_tr, X_te, y_tr, y_te = train_test_split(
        ds.data, ds.target, test_size=0.25, random_state=SEED, stratify=ds.target)
    sc = StandardScaler().fit(X_tr)
    return (sc.transform(X_tr).astype("float32"), y_tr.astype("float32"),
            sc.transform(X_te).astype("float32"), y_te.astype("float32"),
            list(ds.target_names))


def make_model(n_features):
    m = keras.Sequential()
    m.add(keras.Input((n_features,)))
    m.add(layers.Dense(16, activation="relu", kernel_regularizer=regularizers.l2(1e-3)))
    m.add(layers.Dropout(0.2))
    m.add(layers.Dense(8, activation="relu", kernel_regularizer=regularizers.l2(1e-3)))
    m.add(layers.Dense(1, activation="softmax"))
    m.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
    return m


X_train, y_train, X_test, y_test, names = get_data()
print("samples:", len(X_train), "features:", X_train.shape[1], "positive share:", y_train.mean().round(3))

model = make_model(X_train.shape[1])
hist = model.fit(X_train, y_train, epochs=EPOCHS, batch_size=BATCH,
                 validation_split=0.2, verbose=0)

for e in range(0, EPOCHS, 5):
    print("epoch %2d  loss %.4f  acc %.3f  val_loss %.4f  val_acc %.3f" % (
        e + 1, hist.history["loss"][e], hist.history["accuracy"][e],
        hist.history["val_loss"][e], hist.history["val_accuracy"][e]))

prob = model.predict(X_test, verbose=0).ravel()
y_hat = (prob > 0.5).astype(int)
print("test accuracy: %.4f" % np.mean(y_hat == y_test))
print(classification_report(y_test, y_hat, target_names=names, zero_division=0))
