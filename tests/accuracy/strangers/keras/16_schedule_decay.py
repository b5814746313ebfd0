import argparse
import keras
import numpy as np
from keras import layers
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=12)
parser.add_argument("--batch_size", type=int, default=64)
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--decay", type=float, default=0.85)
parser.add_argument("--seed", type=int, default=2)
opt = parser.parse_args()

keras.utils.set_random_seed(opt.seed)

X, y = make_moons(n_samples=3000, noise=0.18, random_state=opt.seed)
X = X.astype("float32")
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.2, random_state=opt.seed)
mean, std = X_tr.mean(0), X_tr.std(0)
X_tr, X_va = (X_tr - mean) / std, (X_va - mean) / std
steps_per_epoch = int(np.ceil(len(X_tr) / opt.batch_size))
print(f"{len(X_tr)} training points, {steps_per_epoch} steps per epoch")

model = keras.Sequential(
    [
        keras.Input((2,)),
        layers.Dense(32, activation="tanh"),
        layers.Dense(16, activation="tanh"),
        layers.Dense(1, activation="sigmoid"),
    ]
)

lr = keras.optimizers.schedules.ExponentialDecay(
    initial_learning_rate=opt.lr,
    decay_steps=1,
    decay_rate=opt.decay,
    staircase=True,
)
model.compile(
    optimizer=keras.optimizers.Adam(lr), loss="binary_crossentropy", metrics=["accuracy"]
)
hist = model.fit(
    X_tr,
    y_tr,
    batch_size=opt.batch_size,
    epochs=opt.epochs,
    validation_data=(X_va, y_va),
    verbose=2,
)

loss, acc = model.evaluate(X_va, y_va, verbose=0)
print("validation: loss %.4f, accuracy %.4f" % (loss, acc))
