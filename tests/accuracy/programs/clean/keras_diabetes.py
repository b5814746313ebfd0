"""Keras regression of the diabetes data with early stopping, a lowered rate and L2."""

import keras
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

keras.utils.set_random_seed(4)
x, y = load_diabetes(return_X_y=True)
x, y = scale(x).astype("float32"), ((y - y.mean()) / y.std()).astype("float32")
l2 = keras.regularizers.L2(1e-3)
model = keras.Sequential(
    [
        keras.layers.Input((10,)),
        keras.layers.Dense(24, activation="tanh", kernel_regularizer=l2),
        keras.layers.Dense(12, activation="relu", kernel_regularizer=l2),
        keras.layers.Dense(1),
    ]
)
model.compile(keras.optimizers.RMSprop(2e-3), "mse", metrics=["mae"])
stop = keras.callbacks.EarlyStopping(patience=5, restore_best_weights=True)
lower = keras.callbacks.ReduceLROnPlateau(factor=0.3, patience=2)
model.fit(x, y, validation_split=0.2, epochs=14, batch_size=32, callbacks=[stop, lower], verbose=0)
print(model.evaluate(x, y, verbose=0))
