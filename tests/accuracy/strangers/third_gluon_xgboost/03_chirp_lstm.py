"""
Classify short sensor sweeps (rising chirp / falling chirp / steady tone) with an LSTM.
"""
import argparse

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, npx
from mxnet.gluon import nn, rnn

npx.set_np()

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=12)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--hidden", type=int, default=48)
parser.add_argument("--lr", type=float, default=5e-3)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

np.random.seed(args.seed)
mx.random.seed(args.seed)


def make_sweeps(n, steps=40, bands=6):
    """Energy in a few frequency bands over time, shape (n, steps, bands)."""
    y = np.random.randint(0, 3, n)
    t = np.linspace(0, 1, steps)
    x = np.zeros((n, steps, bands), dtype="float32")
    centres = np.arange(bands)
    for i, c in enumerate(y):
        lo, hi = np.random.uniform(0, 2), np.random.uniform(3, bands - 1)
        if c == 0:
            pos = lo + (hi - lo) * t
        elif c == 1:
            pos = hi - (hi - lo) * t
        else:
            pos = np.full(steps, np.random.uniform(0, bands - 1))
        x[i] = np.exp(-(pos[:, None] - centres[None]) ** 2)
    x += 0.35 * np.random.randn(*x.shape)
    return x.astype("float32"), y.astype("float32")


class SweepClassifier(gluon.Block):
    def __init__(self, hidden, classes, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.lstm = rnn.LSTM(hidden, num_layers=1)
            self.drop = nn.Dropout(0.2)
            self.head = nn.Dense(classes)

    def forward(self, x):
        h = self.lstm(x).mean(axis=1)
        return self.head(self.drop(h))


x_train, y_train = make_sweeps(1600)
x_test, y_test = make_sweeps(800)
train_data = gluon.data.DataLoader(gluon.data.ArrayDataset(x_train, y_train),
                                   batch_size=args.batch_size, shuffle=True)
test_data = gluon.data.DataLoader(gluon.data.ArrayDataset(x_test, y_test),
                                  batch_size=args.batch_size)

model = SweepClassifier(args.hidden, 3)
model.initialize(mx.init.Xavier())
softmax_ce = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(model.collect_params(), "adam", {"learning_rate": args.lr})


def accuracy(loader):
    hits = count = 0
    for x, y in loader:
        hits += int((model(x).argmax(axis=1).asnumpy() == y.asnumpy()).sum())
        count += len(y)
    return hits / count


for epoch in range(args.epochs):
    cum = 0.0
    for x, y in train_data:
        with autograd.record():
            loss = softmax_ce(model(x), y)
        loss.backward()
        trainer.step(x.shape[0])
        cum += loss.mean().item()
    print("[epoch %d] loss=%.4f train=%.3f test=%.3f"
          % (epoch, cum / len(train_data), accuracy(train_data), accuracy(test_data)))
