"""Transfer learning in two stages: pretrain on digits 0-4, then adapt to 5-9."""
import numpy as np
import keras
from keras import layers
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(0)

data = load_digits()
X = (data.images / 16.0).astype("float32")[..., None]
y = data.target

source = y < 5
Xs, ys = X[source], y[source]
Xt, yt = X[~source], y[~source] - 5
# the target camera delivers rotated, inverted pictures
Xt = 1.0 - np.rot90(Xt, axes=(1, 2)).copy()

Xs_tr, Xs_va, ys_tr, ys_va = train_test_split(Xs, ys, test_size=0.2, random_state=0, stratify=ys)
Xt_tr, Xt_te, yt_tr, yt_te = train_test_split(Xt, yt, test_size=0.3, random_state=0, stratify=yt)
Xt_tr, Xt_va, yt_tr, yt_va = train_test_split(Xt_tr, yt_tr, test_size=0.2, random_state=0, stratify=yt_tr)


def build_base():
    inp = keras.Input((8, 8, 1))
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(inp)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    x = layers.Flatten()(x)
    x = layers.Dense(32, activation="relu")(x)
    return keras.Model(inp, x, name="base")


base = build_base()

# --- stage 0: pretraining on the source task
pretrain = keras.Sequential([base, layers.Dense(5, activation="softmax")])
pretrain.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
pretrain.fit(Xs_tr, ys_tr, epochs=15, batch_size=32, validation_data=(Xs_va, ys_va), verbose=0)
print("source val accuracy: %.3f" % pretrain.evaluate(Xs_va, ys_va, verbose=0)[1])

# --- stage 1: train the new head only
base.trainable = False
inp = keras.Input((8, 8, 1))
x = base(inp, training=False)
out = layers.Dense(5, activation="softmax", name="head")(x)
model = keras.Model(inp, out)
model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(Xt_tr, yt_tr, epochs=15, batch_size=32, validation_data=(Xt_va, yt_va), verbose=2)
print("after head training: %.3f" % model.evaluate(Xt_te, yt_te, verbose=0)[1])

# --- stage 2: unfreeze and fine-tune everything with a lower rate
base.trainable = True
model.optimizer.learning_rate = 3e-4
print("trainable weights:", len(model.trainable_weights))
model.fit(Xt_tr, yt_tr, epochs=30, batch_size=32, validation_data=(Xt_va, yt_va), verbose=2)

loss, acc = model.evaluate(Xt_te, yt_te, verbose=0)
print("after fine-tuning: loss %.3f accuracy %.3f" % (loss, acc))
