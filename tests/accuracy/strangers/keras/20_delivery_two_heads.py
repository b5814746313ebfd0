import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(40)
rng = np.random.default_rng(40)

# --- parcels ------------------------------------------------------------
N = 10000
x = rng.normal(size=(N, 20)).astype("float32")
minutes = 95 + 30 * x[:, 0] - 22 * x[:, 1] + 15 * x[:, 2] * x[:, 3] + rng.normal(0, 8, N)
s = np.stack(
    [
        np.sin(1.5 * x[:, 4]) + x[:, 5] * x[:, 6],
        x[:, 7] - 0.7 * np.abs(x[:, 8]),
        0.8 * x[:, 9] - x[:, 5] * x[:, 7],
    ],
    axis=1,
)
problem = np.argmax(2.5 * s + rng.gumbel(size=s.shape), axis=1)
y_minutes = minutes.astype("float32").reshape(-1, 1)
y_problem = problem.astype("int32").reshape(-1, 1)

cut = int(0.8 * N)
x_train, x_test = x[:cut], x[cut:]
m_train, m_test = y_minutes[:cut], y_minutes[cut:]
p_train, p_test = y_problem[:cut], y_problem[cut:]

# --- model --------------------------------------------------------------
parcel = keras.Input((20,), name="parcel")
h = layers.Dense(64, activation="relu")(parcel)
h = layers.Dense(32, activation="relu")(h)
out_minutes = layers.Dense(
    1, name="minutes", bias_initializer=keras.initializers.Constant(float(m_train.mean()))
)(h)
out_problem = layers.Dense(3, activation="softmax", name="problem")(h)
model = keras.Model(parcel, {"minutes": out_minutes, "problem": out_problem})

model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss={"minutes": "mse", "problem": "sparse_categorical_crossentropy"},
    loss_weights={"minutes": 1.0, "problem": 1.0},
    metrics={"minutes": ["mae"], "problem": ["accuracy"]},
)

# --- fit ----------------------------------------------------------------
early = keras.callbacks.EarlyStopping(patience=3, restore_best_weights=True)
hist = model.fit(
    x_train,
    {"minutes": m_train, "problem": p_train},
    validation_split=0.15,
    epochs=12,
    batch_size=64,
    callbacks=[early],
    verbose=2,
)

res = model.evaluate(x_test, {"minutes": m_test, "problem": p_test}, verbose=0, return_dict=True)
print("epochs:", len(hist.history["loss"]))
print("minutes MAE:      %.3f" % res["minutes_mae"])
print("problem accuracy: %.4f" % res["problem_accuracy"])
