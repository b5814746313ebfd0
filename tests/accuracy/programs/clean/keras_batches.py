"""Keras by train_on_batch: three folds of breast cancer, a fresh model for each, and test_on_batch."""

import keras
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import KFold
from sklearn.preprocessing import scale

keras.utils.set_random_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x, y = scale(x).astype("float32"), y.astype("float32")[:, None]
scores = []
for train, test in KFold(3, shuffle=True, random_state=0).split(x):
    model = keras.Sequential(
        [keras.layers.Input((30,)), keras.layers.Dense(16, "selu"), keras.layers.Dense(1, "sigmoid")]
    )
    model.compile(keras.optimizers.Nadam(2e-3), keras.losses.BinaryCrossentropy())
    for epoch in range(3):
        for batch in np.array_split(np.random.permutation(train), 12):
            model.train_on_batch(x[batch], y[batch])
    scores.append(float(model.test_on_batch(x[test], y[test])))
print(scores)
