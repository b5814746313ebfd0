"""Trains a deep tanh network in Gluon on a smooth function of four inputs."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn


def make(n, rng):
    x = rng.uniform(-1, 1, (n, 4))
    y = np.sin(3 * x[:, 0]) * x[:, 1] + x[:, 2] ** 2 - 0.5 * x[:, 3]
    return mx.nd.array(x), mx.nd.array(y)


def main():
    mx.random.seed(9)
    rng = np.random.RandomState(9)
    x, y = make(800, rng)
    x_test, y_test = make(300, rng)

    net = nn.Sequential()
    for _ in range(4):
        net.add(nn.Dense(64, activation="tanh"))
    net.add(nn.Dense(1))
    net.initialize(mx.init.Normal(1.0))

    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.003})
    l2 = gluon.loss.L2Loss()
    for epoch in range(15):
        order = rng.permutation(800)
        for start in range(0, 800, 40):
            idx = mx.nd.array(order[start : start + 40])
            with autograd.record():
                loss = l2(net(x.take(idx)), y.take(idx))
            loss.backward()
            trainer.step(40)
        if epoch % 5 == 4:
            error = l2(net(x_test), y_test).mean().asscalar()
            print(f"epoch {epoch + 1} test error {error:.4f}")


if __name__ == "__main__":
    main()
