"""Gluon convolutional network on the 8x8 digits."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, init, nd
from mxnet.gluon import nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

mx.random.seed(4)
np.random.seed(4)

BATCH_SIZE = 64
EPOCHS = 12
LR = 0.1


def get_data():
    d = load_digits()
    x = (d.images / 16.0).astype("float32")[:, None]
    y = d.target.astype("float32")
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.2, random_state=0, stratify=y)
    train = gluon.data.ArrayDataset(nd.array(xa), nd.array(ya))
    test = gluon.data.ArrayDataset(nd.array(xb), nd.array(yb))
    return (
        gluon.data.DataLoader(train, BATCH_SIZE, shuffle=True),
        gluon.data.DataLoader(test, 180),
    )


def build_net():
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(32, 3, padding=1, activation="relu"),
        nn.MaxPool2D(2),
        nn.Conv2D(64, 3, padding=1, activation="relu"),
        nn.MaxPool2D(2),
        nn.Flatten(),
        nn.Dense(64, activation="relu"),
        nn.Dense(10),
    )
    net.initialize(init.Xavier())
    net.hybridize()
    return net


def evaluate(net, loader):
    metric = mx.metric.Accuracy()
    for x, y in loader:
        metric.update(y, net(x))
    return metric.get()[1]


def main():
    train_loader, test_loader = get_data()
    net = build_net()
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": LR, "momentum": 0.9})

    for epoch in range(EPOCHS):
        total, batches = 0.0, 0
        for x, y in train_loader:
            with autograd.record():
                loss = loss_fn(net(x), y).mean()
            loss.backward()
            trainer.step(x.shape[0])
            total += loss.asscalar()
            batches += 1
        print(f"epoch {epoch + 1:2d}  loss {total / batches:.4f}  test acc {evaluate(net, test_loader):.3f}")


if __name__ == "__main__":
    main()
