"""Matrix-factorisation recommender on (user, item, rating) triples."""
import numpy as np
import keras
from keras import layers, ops

keras.utils.set_random_seed(7)
rng = np.random.default_rng(7)

N_USERS, N_ITEMS, N_RATINGS = 400, 250, 24000
MIN_RATING, MAX_RATING = 1.0, 5.0

# simulate a small ratings table
u_taste = rng.normal(0, 1, (N_USERS, 4))
i_style = rng.normal(0, 1, (N_ITEMS, 4))
u_bias = rng.normal(0, 0.4, N_USERS)
i_bias = rng.normal(0, 0.5, N_ITEMS)
users = rng.integers(0, N_USERS, N_RATINGS)
items = rng.integers(0, N_ITEMS, N_RATINGS)
score = 3.4 + u_bias[users] + i_bias[items]
score += 0.5 * np.sum(u_taste[users] * i_style[items], axis=1)
score += rng.normal(0, 0.3, N_RATINGS)
ratings = np.clip(np.rint(score), MIN_RATING, MAX_RATING).astype("float32")

pairs = np.stack([users, items], axis=1).astype("int32")
order = rng.permutation(N_RATINGS)
pairs, ratings = pairs[order], ratings[order]
cut = int(0.9 * N_RATINGS)
x_train, x_val = pairs[:cut], pairs[cut:]
y_train, y_val = ratings[:cut], ratings[cut:]


class RecommenderNet(keras.Model):
    def __init__(self, num_users, num_items, dim=8):
        super().__init__()
        reg = keras.regularizers.l2(1e-6)
        self.user_embedding = layers.Embedding(
            num_users, dim, embeddings_initializer="he_normal",
            embeddings_regularizer=reg)
        self.user_bias = layers.Embedding(num_users, 1)
        self.item_embedding = layers.Embedding(
            num_items, dim, embeddings_initializer="he_normal",
            embeddings_regularizer=reg)
        self.item_bias = layers.Embedding(num_items, 1)

    def call(self, inputs):
        u = self.user_embedding(inputs[:, 0])
        v = self.item_embedding(inputs[:, 1])
        dot = ops.sum(u * v, axis=-1, keepdims=True)
        x = dot + self.user_bias(inputs[:, 0]) + self.item_bias(inputs[:, 1])
        return ops.sigmoid(x)


model = RecommenderNet(N_USERS, N_ITEMS)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="mse", metrics=["mae"])
model.fit(x_train, y_train, batch_size=128, epochs=10,
          validation_data=(x_val, y_val), verbose=2)

pred = model.predict(x_val, verbose=0).ravel()
print("val RMSE (stars): %.3f" % np.sqrt(np.mean((pred - y_val) ** 2)))
print("baseline RMSE, mean rating: %.3f" % np.std(y_val))
for p, t in list(zip(pred, y_val))[:5]:
    print("predicted %.2f  true %.0f" % (p, t))
