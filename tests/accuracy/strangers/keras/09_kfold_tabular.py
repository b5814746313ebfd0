import keras
import numpy as np
from keras import layers
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

SEED = 42
FOLDS = 5
EPOCHS = 10
BATCH = 16

keras.utils.set_random_seed(SEED)

X, y = make_classification(
    n_samples=400,
    n_features=20,
    n_informative=6,
    n_redundant=0,
    flip_y=0.1,
    class_sep=1.3,
    random_state=SEED,
)
X = X.astype("float32")


def create_model():
    model = keras.Sequential(
        [
            keras.Input((X.shape[1],)),
            layers.Dense(64, activation="relu"),
            layers.Dropout(0.2),
            layers.Dense(32, activation="relu"),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="binary_crossentropy",
        metrics=["accuracy"],
    )
    return model


skf = StratifiedKFold(n_splits=FOLDS, shuffle=True, random_state=SEED)
scores = []
model = create_model()
for fold, (tr, va) in enumerate(skf.split(X, y), 1):
    scaler = StandardScaler().fit(X[tr])
    x_tr, x_va = scaler.transform(X[tr]), scaler.transform(X[va])
    hist = model.fit(
        x_tr,
        y[tr],
        validation_data=(x_va, y[va]),
        epochs=EPOCHS,
        batch_size=BATCH,
        verbose=0,
    )
    loss, acc = model.evaluate(x_va, y[va], verbose=0)
    scores.append(acc)
    print(
        f"fold {fold}: train loss {hist.history['loss'][-1]:.4f} "
        f"val loss {loss:.4f} val acc {acc:.4f}"
    )

print(f"cross-validated accuracy: {np.mean(scores):.4f} +/- {np.std(scores):.4f}")
