import os
import tempfile

import keras
from keras import layers
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(77)

CKPT = os.path.join(tempfile.mkdtemp(), "best.weights.h5")


def get_data():
    X, y = make_classification(
        n_samples=6000,
        n_features=24,
        n_informative=10,
        n_clusters_per_class=4,
        weights=[0.9],
        class_sep=0.9,
        flip_y=0.01,
        random_state=77,
    )
    X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.25, stratify=y, random_state=1)
    X_tr, X_va, y_tr, y_va = train_test_split(X_tr, y_tr, test_size=0.2, stratify=y_tr, random_state=1)
    sc = StandardScaler().fit(X_tr)
    return [(sc.transform(a).astype("float32"), b) for a, b in ((X_tr, y_tr), (X_va, y_va), (X_te, y_te))]


def get_model(n_in):
    i = keras.Input((n_in,))
    h = layers.Dense(64, activation="relu")(i)
    h = layers.Dropout(0.3)(h)
    h = layers.Dense(32, activation="relu")(h)
    o = layers.Dense(1, activation="sigmoid")(h)
    m = keras.Model(i, o)
    m.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="binary_crossentropy",
        metrics=[keras.metrics.AUC(name="auc"), keras.metrics.Recall(name="recall")],
    )
    return m


(X_tr, y_tr), (X_va, y_va), (X_te, y_te) = get_data()
print("fraud share", y_tr.mean().round(4), y_va.mean().round(4), y_te.mean().round(4))

model = get_model(X_tr.shape[1])
callbacks = [
    keras.callbacks.ModelCheckpoint(
        CKPT,
        monitor="val_auc",
        mode="min",
        save_best_only=True,
        save_weights_only=True,
        verbose=1,
    ),
    keras.callbacks.TerminateOnNaN(),
]
model.fit(
    X_tr,
    y_tr,
    validation_data=(X_va, y_va),
    epochs=15,
    batch_size=64,
    callbacks=callbacks,
    verbose=2,
)

model.load_weights(CKPT)
res = model.evaluate(X_te, y_te, verbose=0, return_dict=True)
print("test:", {k: round(v, 4) for k, v in res.items()})
