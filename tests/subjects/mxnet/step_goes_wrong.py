"""A training of which one step goes wrong, by what it is given or computes; it prints its losses.

The fault is named by an option; which step it is follows from the order of the data.
"""

from __future__ import annotations

import argparse

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

OF_DATA = ("row", "label", "labels")
OF_CODE = ("log", "loss", "root", "hidden", "mask", "function", "scalar", "view", "filled")
FAULTS = ("none", "weight", "rate", *OF_DATA, *OF_CODE)
AT = 5
entropy, squares = gluon.loss.SoftmaxCrossEntropyLoss(), gluon.loss.L2Loss()


class Shares(gluon.HybridBlock):
    """The logarithm of a share, which is 0 where the mark is."""

    def hybrid_forward(self, F, x, mark):
        return F.log(F.broadcast_mul(F.sigmoid(x), mark))  # HERE


class Net(gluon.HybridBlock):
    def __init__(self, kind, **kwargs):
        super().__init__(**kwargs)
        self.kind = kind
        with self.name_scope():
            self.body = nn.HybridSequential()
            self.body.add(nn.Dense(16, in_units=8), nn.BatchNorm(), nn.Activation("tanh"), nn.Dropout(0.2))
            self.shares = Shares()
            self.head = nn.Dense(3, in_units=16)

    def hybrid_forward(self, F, x, mark):
        found = F.broadcast_mul(self.body(x), F.ones_like(mark))
        if self.kind == "log":
            found = self.shares(found, mark)
        if self.kind == "mask":
            found = F.softmax(F.where(F.broadcast_like(mark, found, (1,), (1,)), found, F.ones_like(found) * -np.inf))
        if self.kind == "root":
            found = F.sqrt(F.broadcast_mul(F.square(found) + 0.1, mark))  # HERE
        if self.kind == "hidden":
            made = F.sqrt(F.broadcast_mul(F.square(found) + 0.1, mark * 2 - 1))  # HERE
            found = F.where(F.broadcast_like(mark, found, (1,), (1,)), made, found)
        return self.head(found)


class Squares(autograd.Function):
    def forward(self, x):
        return x * x / x.sum(axis=1, keepdims=True)  # HERE

    def backward(self, gradient):
        return gradient


def data(fault, seed):
    numbers = np.random.RandomState(seed)
    x = numbers.rand(64, 8).astype("float32")
    y = (np.arange(64) % 3).astype("float32")
    mark = np.ones((64, 1), dtype="float32")
    row = AT * 8 + 3
    if fault == "row":
        x[row] = np.nan
    if fault in ("log", "mask", "root", "hidden", "view"):
        mark[row] = 0
    if fault in ("label", "labels"):
        y[row] = np.nan
    return [nd.array(one) for one in (x, y, mark)]


def loss_of(fault, found, y, mark, good):
    if fault == "loss":
        share = nd.softmax(found) * good
        return found.square().mean() / share.sum()  # HERE
    if fault == "label":
        return squares(found, nd.stack(y, y, y, axis=1))
    if fault == "labels":
        return squares(found, nd.array(np.stack([y.asnumpy()] * 3, 1)))  # GIVEN
    if fault == "function":
        return Squares()(found * good).mean()
    if fault == "scalar":
        return (found / good).mean()  # HERE
    if fault == "view":
        logarithms = nd.log(nd.softmax(found) * mark)  # HERE
        return logarithms[3].reshape((3, 1))[0:2].mean()
    if fault == "filled":
        with autograd.pause():
            hidden = nd.zeros_like(found)
            if not good:
                hidden[3] = -np.inf
                hidden[4:5] = nd.full((1, 3), -np.inf)
                hidden[4, 1] = 0
        return nd.softmax(found + hidden).square().mean()  # HERE
    return entropy(found, y)


def train(options):
    if options.seed is not None:
        mx.random.seed(options.seed)
    net = Net(options.fault, prefix="net_")
    net.initialize()
    if options.fault == "weight":
        net.head.weight.set_data(nd.full((3, 16), np.nan))
    if options.hybridize:
        net.hybridize(**({"static_alloc": True, "static_shape": True} if options.static else {}))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05})
    xs, ys, marks = data(options.fault, options.seed)
    for step in range(options.steps):
        place = step % 8 * 8
        x, y, mark = (one[place : place + 8] for one in (xs, ys, marks))
        with autograd.record():
            found = net(x, mark)
            loss = loss_of(options.fault, found, y, mark, step != AT)
        loss.backward()
        print(loss.mean().asscalar())
        if options.fault == "rate" and step == AT:
            trainer.set_learning_rate(3e38)
        trainer.step(1e-6 if trainer.learning_rate > 1 else 8)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--hybridize", action="store_true")
    parser.add_argument("--static", action="store_true")
    train(parser.parse_args())
