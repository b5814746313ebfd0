#!/usr/bin/env python
"""10-fold cross-validation of an MLP for credit default, then a final check on a hold-out set."""
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

N_FOLDS = 10
EPOCHS = 12
BATCH_SIZE = 32

keras.utils.set_random_seed(2024)

X, y = make_classification(n_samples=2200, n_features=20, n_informative=8, n_redundant=4,
                           n_clusters_per_class=2, class_sep=1.2, flip_y=0.2, random_state=8)
X = X.astype("float32")
X_dev, X_hold, y_dev, y_hold = train_test_split(X, y, test_size=0.3, stratify=y, random_state=8)


def build_model():
    model = keras.Sequential([
        keras.Input((X.shape[1],)),
        layers.Dense(64, activation="relu"),
        layers.Dense(32, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy", metrics=["accuracy"])
    return model


skf = StratifiedKFold(n_splits=N_FOLDS, shuffle=True, random_state=0)
fold_scores = []
model = build_model()

for fold, (tr, va) in enumerate(skf.split(X_dev, y_dev), start=1):
    scaler = StandardScaler().fit(X_dev[tr])
    model.fit(scaler.transform(X_dev[tr]), y_dev[tr], epochs=EPOCHS, batch_size=BATCH_SIZE, verbose=0)
    train_acc = model.evaluate(scaler.transform(X_dev[tr]), y_dev[tr], verbose=0)[1]
    loss, acc = model.evaluate(scaler.transform(X_dev[va]), y_dev[va], verbose=0)
    fold_scores.append(acc)
    print(f"fold {fold}: train acc {train_acc:.3f}  val acc {acc:.3f}  val loss {loss:.3f}")

print(f"CV accuracy: {np.mean(fold_scores):.3f} +/- {np.std(fold_scores):.3f}")

hold_loss, hold_acc = model.evaluate(scaler.transform(X_hold), y_hold, verbose=0)
print(f"hold-out accuracy of the last model: {hold_acc:.3f} (loss {hold_loss:.3f})")
