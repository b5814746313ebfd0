"""Flat listings: two inputs (numbers + district), two outputs (price and listing type)."""
import numpy as np
import keras
from keras import layers

keras.utils.set_random_seed(8)
rng = np.random.default_rng(8)

N, DISTRICTS = 5000, 12
area = rng.uniform(25, 160, N)
rooms = np.clip(np.rint(area / 28 + rng.normal(0, 0.6, N)), 1, 7)
age = rng.uniform(0, 90, N)
floor = rng.integers(0, 9, N)
district = rng.integers(0, DISTRICTS, N)
level = rng.uniform(0.7, 1.8, DISTRICTS)

price = 2200 * area * level[district] * np.exp(-age / 160) + 4000 * floor
price = price * rng.normal(1, 0.05, N)

# 0 = studio, 1 = family flat, 2 = luxury, 3 = renovation case
kind = np.where(rooms <= 2, 0, 1)
kind = np.where((level[district] > 1.3) & (age < 30), 2, kind)
kind = np.where((age > 55) & (floor < 5), 3, kind)
swap = rng.random(N) < 0.03
kind[swap] = rng.integers(0, 4, swap.sum())

numbers = np.stack([area, rooms, age, floor], axis=1)
numbers = ((numbers - numbers.mean(0)) / numbers.std(0)).astype("float32")
price = price.astype("float32")

tr, te = slice(0, 4000), slice(4000, None)

num_in = keras.Input((4,), name="numbers")
dis_in = keras.Input((1,), dtype="int32", name="district")
d = layers.Flatten()(layers.Embedding(DISTRICTS, 4)(dis_in))
h = layers.Concatenate()([num_in, d])
h = layers.Dense(64, activation="relu")(h)
h = layers.Dense(64, activation="relu")(h)
price_out = layers.Dense(1, name="price")(h)
kind_out = layers.Dense(4, activation="softmax", name="kind")(h)
model = keras.Model([num_in, dis_in], [price_out, kind_out])

model.compile(
    optimizer=keras.optimizers.Adam(5e-3),
    loss={"price": "mse", "kind": "sparse_categorical_crossentropy"},
    metrics={"price": ["mae"], "kind": ["accuracy"]},
)
model.fit(
    {"numbers": numbers[tr], "district": district[tr]},
    {"price": price[tr], "kind": kind[tr]},
    validation_split=0.1, batch_size=64, epochs=25, verbose=2,
)

p, k = model.predict({"numbers": numbers[te], "district": district[te]}, verbose=0)
p = p.ravel()
print("price MAPE: %.2f %%" % (100 * np.mean(np.abs(p - price[te]) / price[te])))
print("kind accuracy: %.4f" % np.mean(k.argmax(1) == kind[te]))
