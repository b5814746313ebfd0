"""Card fraud: imbalanced tabular data, keep the best epoch by validation AUC."""
import os
import tempfile

import numpy as np
import keras
from keras import layers
from sklearn.datasets import make_classification
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

keras.utils.set_random_seed(2024)

X, y = make_classification(
    n_samples=9000, n_features=24, n_informative=10, n_redundant=4,
    n_clusters_per_class=3, weights=[0.95, 0.05], flip_y=0.01,
    class_sep=1.0, random_state=2024)
X_tmp, X_test, y_tmp, y_test = train_test_split(X, y, test_size=0.25, stratify=y, random_state=1)
X_train, X_val, y_train, y_val = train_test_split(X_tmp, y_tmp, test_size=0.2, stratify=y_tmp, random_state=1)

scaler = StandardScaler().fit(X_train)
X_train, X_val, X_test = map(scaler.transform, (X_train, X_val, X_test))

neg, pos = np.bincount(y_train)
class_weight = {0: 1.0, 1: neg / pos / 2}


def make_model():
    return keras.Sequential([
        keras.Input((X_train.shape[1],)),
        layers.Dense(64, activation="relu"),
        layers.Dropout(0.2),
        layers.Dense(32, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ])


model = make_model()
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss="binary_crossentropy",
    metrics=[keras.metrics.AUC(name="auc")],
)

path = os.path.join(tempfile.mkdtemp(), "best.weights.h5")
checkpoint = keras.callbacks.ModelCheckpoint(
    path, monitor="val_auc", mode="min", save_best_only=True,
    save_weights_only=True, verbose=1)

model.fit(X_train, y_train, validation_data=(X_val, y_val),
          epochs=20, batch_size=128, class_weight=class_weight,
          callbacks=[checkpoint], verbose=2)

model.load_weights(path)
score = model.predict(X_test, verbose=0).ravel()
print("test ROC AUC: %.4f" % roc_auc_score(y_test, score))
print("test average precision: %.4f" % average_precision_score(y_test, score))
print("frauds in the top 100: %d of %d" % (y_test[np.argsort(-score)[:100]].sum(), y_test.sum()))
