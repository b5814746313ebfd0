"""Recognise the state of a machine from 24 sensor readings."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(17)

STATES = ["idle", "warmup", "run", "overload", "coast", "fault"]

X, y = make_classification(n_samples=6000, n_features=24, n_informative=12, n_redundant=4, n_classes=6,
                           n_clusters_per_class=1, class_sep=1.6, flip_y=0.02, random_state=17)
# raw sensor units
rng = np.random.default_rng(17)
X = (X * rng.uniform(0.5, 40, 24) + rng.uniform(-100, 100, 24)).astype("float32")

X_tr, X_te, y_tr, y_te = train_test_split(X, y, test_size=0.2, stratify=y, random_state=17)
X_tr, X_va, y_tr, y_va = train_test_split(X_tr, y_tr, test_size=0.2, stratify=y_tr, random_state=17)

train_ds = (tf.data.Dataset.from_tensor_slices((X_tr, y_tr))
            .shuffle(len(X_tr), seed=17).batch(32).prefetch(tf.data.AUTOTUNE))
val_ds = tf.data.Dataset.from_tensor_slices((X_va, y_va)).batch(256)
test_ds = tf.data.Dataset.from_tensor_slices((X_te, y_te)).batch(256)

norm = layers.Normalization()
norm.adapt(X_tr)

inputs = keras.Input((24,), name="sensors")
h = norm(inputs)
h = layers.Dense(64, activation="relu")(h)
h = layers.Dropout(0.1)(h)
h = layers.Dense(32, activation="relu")(h)
outputs = layers.Dense(len(STATES), activation="softmax", name="state")(h)
model = keras.Model(inputs, outputs)

model.compile(
    optimizer=keras.optimizers.SGD(learning_rate=0.005, momentum=0.9),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)

callbacks = [
    keras.callbacks.EarlyStopping(monitor="val_accuracy", mode="min", patience=15,
                                  restore_best_weights=True, verbose=1),
    keras.callbacks.TerminateOnNaN(),
]

history = model.fit(train_ds, validation_data=val_ds, epochs=60, callbacks=callbacks, verbose=2)
print("epochs run:", len(history.epoch))

loss, acc = model.evaluate(test_ds, verbose=0)
pred = model.predict(X_te, verbose=0).argmax(axis=1)
print("test loss      %.4f" % loss)
print("test accuracy  %.4f" % acc)
print("test macro F1  %.4f" % f1_score(y_te, pred, average="macro"))
