"""Trains a small convolutional Gluon net on scikit-learn's digits. It knows nothing of smd_agent."""

from __future__ import annotations

import argparse

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn
from sklearn.datasets import load_digits


def loaders(batch_size: int) -> tuple[gluon.data.DataLoader, gluon.data.DataLoader]:
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    labels = digits.target.astype(np.float32)
    order = np.random.permutation(len(images))
    parts = order[:1437], order[1437:]
    train, test = (gluon.data.ArrayDataset(images[part], labels[part]) for part in parts)
    return gluon.data.DataLoader(train, batch_size, shuffle=True), gluon.data.DataLoader(test, batch_size)


def make_net() -> nn.HybridSequential:
    net = nn.HybridSequential()
    with net.name_scope():
        net.add(nn.Conv2D(16, 3, padding=1, activation="relu"), nn.MaxPool2D(2))
        net.add(nn.Conv2D(32, 3, padding=1, activation="relu"), nn.MaxPool2D(2))
        net.add(nn.Flatten(), nn.Dense(64, activation="relu"), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--save", metavar="FILE", help="store the trained parameters here")
    options = parser.parse_args()
    mx.random.seed(0)
    np.random.seed(0)
    train, test = loaders(64)
    net = make_net()
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    for epoch in range(1, options.epochs + 1):
        total = 0.0
        for x, y in train:
            with autograd.record():
                loss = loss_fn(net(x), y)
            loss.backward()
            trainer.step(len(x))
            total += float(loss.sum().asscalar())
        accuracy = mx.metric.Accuracy()
        for x, y in test:
            accuracy.update(y, net(x))
        print(f"epoch {epoch}  train loss {total / 1437:.4f}  accuracy {accuracy.get()[1]:.3f}")
    if options.save:
        net.save_parameters(options.save)


if __name__ == "__main__":
    main()
