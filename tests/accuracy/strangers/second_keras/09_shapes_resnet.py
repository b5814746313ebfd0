import numpy as np
import keras
from keras import layers

# ---------------------------------------------------------------- config
SIZE = 20
EPOCHS = 10
BATCH_SIZE = 50
BASE_LR = 0.05
NAMES = ["disc", "square", "cross", "ring"]
keras.utils.set_random_seed(21)
rng = np.random.default_rng(21)


# ---------------------------------------------------------------- data
def draw(kind):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    cy, cx = rng.uniform(7, SIZE - 8, 2)
    r = rng.uniform(4, 6)
    dy, dx = yy - cy, xx - cx
    dist = np.hypot(dx, dy)
    if kind == 0:
        img = dist < r
    elif kind == 1:
        img = np.maximum(abs(dx), abs(dy)) < r * 0.9
    elif kind == 2:
        img = ((abs(dx) < 1.2) | (abs(dy) < 1.2)) & (np.maximum(abs(dx), abs(dy)) < r)
    else:
        img = (dist < r) & (dist > r - 2)
    img = img * rng.uniform(0.7, 1.0) + rng.normal(0, 0.25, img.shape)
    return img


def make_set(n):
    y = rng.integers(0, 4, n)
    x = np.stack([draw(k) for k in y]).astype("float32")[..., None]
    return x, y


x_train, y_train = make_set(2500)
x_val, y_val = make_set(500)
x_test, y_test = make_set(500)
mean, std = x_train.mean(), x_train.std()
x_train, x_val, x_test = [(a - mean) / std for a in (x_train, x_val, x_test)]


# ---------------------------------------------------------------- model
def res_block(x, filters, stride=1):
    shortcut = x
    x = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.9)(x)
    x = layers.ReLU()(x)
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization(momentum=0.9)(x)
    if stride != 1 or shortcut.shape[-1] != filters:
        shortcut = layers.Conv2D(filters, 1, strides=stride, use_bias=False)(shortcut)
        shortcut = layers.BatchNormalization(momentum=0.9)(shortcut)
    return layers.ReLU()(layers.Add()([x, shortcut]))


inputs = keras.Input((SIZE, SIZE, 1))
x = layers.Conv2D(8, 3, padding="same", use_bias=False)(inputs)
x = layers.BatchNormalization(momentum=0.9)(x)
x = layers.ReLU()(x)
x = res_block(x, 8)
x = res_block(x, 16, stride=2)
x = res_block(x, 32, stride=2)
x = layers.GlobalAveragePooling2D()(x)
model = keras.Model(inputs, layers.Dense(4)(x), name="mini_resnet")
print("parameters:", model.count_params())

# ---------------------------------------------------------------- training
schedule = keras.optimizers.schedules.CosineDecay(BASE_LR, decay_steps=EPOCHS)
model.compile(
    optimizer=keras.optimizers.SGD(schedule, momentum=0.9, nesterov=True),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(x_train, y_train, batch_size=BATCH_SIZE, epochs=EPOCHS, validation_data=(x_val, y_val), verbose=2)

loss, acc = model.evaluate(x_test, y_test, verbose=0)
print(f"test loss {loss:.3f} | test acc {acc:.3f}")
pred = model.predict(x_test, verbose=0).argmax(1)
print({n: round(float((pred[y_test == i] == i).mean()), 3) for i, n in enumerate(NAMES)})
