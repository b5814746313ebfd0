"""Binary tumour classifier in Keras."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
from keras import layers
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import classification_report
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(5)


def load():
    x, y = load_breast_cancer(return_X_y=True)
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.25, random_state=0, stratify=y)
    scaler = StandardScaler().fit(xa)
    return (
        scaler.transform(xa).astype("float32"),
        ya.astype("float32"),
        scaler.transform(xb).astype("float32"),
        yb.astype("float32"),
    )


def build_model(n_features):
    model = keras.Sequential(
        [
            keras.Input(shape=(n_features,)),
            layers.Dense(64, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(32, activation="relu"),
            layers.Dense(1, activation="softmax"),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="binary_crossentropy",
        metrics=["accuracy"],
    )
    return model


def main():
    xa, ya, xb, yb = load()
    model = build_model(xa.shape[1])
    model.fit(
        xa,
        ya,
        batch_size=32,
        epochs=15,
        validation_data=(xb, yb),
        verbose=2,
    )
    proba = model.predict(xb, verbose=0).ravel()
    pred = (proba > 0.5).astype(int)
    print(classification_report(yb.astype(int), pred, zero_division=0))
    print("mean probability", float(np.mean(proba)))


if __name__ == "__main__":
    main()
