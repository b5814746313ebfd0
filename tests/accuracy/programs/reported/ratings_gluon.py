"""Trains a Gluon network that guesses a film's rating, one to four stars, from what was said of it."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

mx.random.seed(7)
rng = np.random.RandomState(7)

WORDS, STARS = 60, 4


def reviews(n):
    """Word indices of a review, and its number of stars."""
    stars = rng.randint(1, STARS + 1, n)
    liked = rng.rand(n, 14) < 0.35
    words = np.where(liked, (stars[:, None] - 1) * 15 + rng.randint(0, 15, (n, 14)), rng.randint(0, WORDS, (n, 14)))
    return words.astype("float32"), stars.astype("float32")


class Rater(gluon.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embed = nn.Embedding(WORDS, 16)
        self.hidden = nn.Dense(32, activation="relu")
        self.out = nn.Dense(STARS)

    def forward(self, words):
        return self.out(self.hidden(self.embed(words).mean(axis=1)))


net = Rater()
net.initialize(mx.init.Xavier())
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.005})
criterion = gluon.loss.SoftmaxCrossEntropyLoss()
train = gluon.data.DataLoader(gluon.data.ArrayDataset(*reviews(1200)), batch_size=40, shuffle=True)

for epoch in range(8):
    losses = []
    for words, stars in train:
        with autograd.record():
            loss = criterion(net(words), stars)
        loss.backward()
        trainer.step(words.shape[0])
        losses.append(loss.mean().asscalar())
    print(f"epoch {epoch} loss {sum(losses) / len(losses):.3f}")

words, stars = reviews(400)
guess = net(mx.nd.array(words)).argmax(axis=1).asnumpy()
print("guesses by star", np.bincount(guess.astype(int), minlength=STARS))
for star in range(1, STARS + 1):
    print(f"{star} stars: read as such {(guess[stars == star] == star).mean():.2f}")
