"""Gluon trainings of small data: digits, wine, diabetes, waves; by name."""

import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, rnn
from sklearn.datasets import load_diabetes, load_digits, load_wine
from sklearn.preprocessing import scale

mx.random.seed(0)
np.random.seed(0)


def batches(x, y, size, epochs):
    data = gluon.data.ArrayDataset(x.astype("float32"), y.astype("float32"))
    loader = gluon.data.DataLoader(data, size, shuffle=True, last_batch="discard")
    for _ in range(epochs):
        yield from loader


def fit(net, trainer, loss_fn, data, clip=None):
    for number, (x, y) in enumerate(data):
        with autograd.record():
            loss = loss_fn(net(x), y)
        loss.backward()
        if clip:
            gradients = [p.grad() for p in net.collect_params().values() if p.grad_req != "null"]
            gluon.utils.clip_global_norm(gradients, clip * len(x))
        trainer.step(len(x))
        if number % 40 == 0:
            print(number, float(loss.mean().asscalar()))


def digits():
    images = load_digits()
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(8, 3, padding=1),
        nn.BatchNorm(),
        nn.Activation("relu"),
        nn.MaxPool2D(2),
        nn.Dropout(0.2),
        nn.Dense(10),
    )
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05, "momentum": 0.9, "wd": 1e-4})
    data = batches(images.images[:, None] / 16, images.target, 32, 3)
    fit(net, trainer, gluon.loss.SoftmaxCrossEntropyLoss(), data)


def wine():
    x, y = load_wine(return_X_y=True)
    net = nn.Sequential()
    net.add(nn.Dense(16, activation="tanh"), nn.Dense(3))
    net.initialize(mx.init.Normal(0.3))
    schedule = mx.lr_scheduler.CosineScheduler(120, base_lr=0.01, final_lr=1e-4, warmup_steps=10)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01, "lr_scheduler": schedule})
    fit(net, trainer, gluon.loss.SoftmaxCrossEntropyLoss(), batches(scale(x), y, 16, 12))


def diabetes():
    x, y = load_diabetes(return_X_y=True)
    net = nn.HybridSequential()
    net.add(nn.Dense(24, activation="relu"), nn.LayerNorm(), nn.Dense(1))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "rmsprop", {"learning_rate": 2e-3})
    fit(net, trainer, gluon.loss.HuberLoss(), batches(scale(x), scale(y), 32, 10))


def waves():
    phase, speed = 6.28 * np.random.rand(640, 1), 0.2 + 0.3 * np.random.rand(640, 1)
    wave = np.sin(phase + speed * np.arange(21))

    class Net(gluon.Block):
        def __init__(self):
            super().__init__()
            self.inner = rnn.LSTM(16, layout="NTC", input_size=1)
            self.out = nn.Dense(1, flatten=False)

        def forward(self, x):
            return self.out(self.inner(x))

    net = Net()
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 5e-3})
    fit(net, trainer, gluon.loss.L2Loss(), batches(wave[:, :-1, None], wave[:, 1:, None], 32, 5), clip=1.0)


def autoencoder():
    x = load_digits().data / 16
    net = nn.HybridSequential()
    net.add(
        nn.Dense(32, activation="relu"),
        nn.Dense(8),
        nn.Dense(32, activation="relu"),
        nn.Dense(64, activation="sigmoid"),
    )
    net.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 3e-3})
    fit(net, trainer, gluon.loss.SigmoidBinaryCrossEntropyLoss(from_sigmoid=True), batches(x, x, 64, 5))


def frozen():
    x, y = load_digits(return_X_y=True)
    trunk = nn.HybridSequential()
    trunk.add(nn.Dense(48, activation="relu"), nn.Dense(24, activation="relu"))
    first, second = nn.HybridSequential(), nn.HybridSequential()
    first.add(trunk, nn.Dense(5))
    first.initialize(mx.init.Xavier())
    trainer = gluon.Trainer(first.collect_params(), "adam", {"learning_rate": 3e-3})
    fit(first, trainer, gluon.loss.SoftmaxCELoss(), batches(x[y < 5] / 16, y[y < 5], 32, 2))
    trunk.collect_params().setattr("grad_req", "null")
    second.add(trunk, nn.Dense(5))
    second[1].initialize(mx.init.Xavier())
    trainer = gluon.Trainer(second[1].collect_params(), "adam", {"learning_rate": 1e-2})
    fit(second, trainer, gluon.loss.SoftmaxCELoss(), batches(x[y >= 5] / 16, y[y >= 5] - 5, 32, 3))


def accumulated():
    x, y = load_digits(return_X_y=True)
    net = nn.Sequential()
    net.add(nn.Dense(48, activation="relu"), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    parameters = net.collect_params()
    net(nd.zeros((1, 64)))
    for parameter in parameters.values():
        parameter.grad_req = "add"
    trainer = gluon.Trainer(parameters, "sgd", {"learning_rate": 0.2})
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
    for number, (inputs, targets) in enumerate(batches(x / 16, y, 16, 2), 1):
        with autograd.record():
            loss = loss_fn(net(inputs), targets)
        loss.backward()
        if number % 4 == 0:
            trainer.step(64)
            for parameter in parameters.values():
                parameter.zero_grad()
    print(float(loss.mean().asscalar()))


globals()[sys.argv[1]]()
