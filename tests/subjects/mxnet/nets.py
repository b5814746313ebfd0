"""Nets of the Gluon scripts, and how they are trained."""

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn


def dense(prefix, **kwargs):
    net = nn.Dense(3, in_units=6, prefix=prefix, **kwargs)
    net.initialize(mx.init.Xavier())
    return net


def two_layers(prefix, *, hybridize=False):
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Dense(5, in_units=6, activation="relu"), nn.Dense(3, in_units=5))
    net.initialize(mx.init.Xavier())
    if hybridize:
        net.hybridize()
    return net


def sgd(net, **options):
    return gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, **options)


class Pick(gluon.Block):
    """Runs one of two layers."""

    def __init__(self, layers, **kwargs):
        super().__init__(**kwargs)
        self.layers = layers

    def forward(self, x, i):
        return self.layers[int(i.asscalar())](x)


class Shared(gluon.HybridBlock):
    """A layer used twice, and another one with the same parameters."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.a = nn.Dense(6, in_units=6, flatten=False)
            self.b = nn.Dense(6, in_units=6, params=self.a.params)

    def hybrid_forward(self, F, x):
        y = self.a(x)
        z = self.a(y * 2)
        return F.concat(z, self.b(z), y)


class NumpyNet(gluon.HybridBlock):
    """Two layers, in the words of MXNet's NumPy front end."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.fc1, self.fc2 = nn.Dense(5, in_units=6), nn.Dense(3, in_units=5)

    def hybrid_forward(self, F, x):
        return self.fc2(F.npx.relu(self.fc1(x)))


class Reader(gluon.HybridBlock):
    """Reads words, and says its loss itself."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.words = nn.Embedding(11, 5)
            self.memory = gluon.rnn.LSTM(7, 2, layout="NTC", dropout=0.2, input_size=5)
            self.out = nn.Dense(3, flatten=False, in_units=7)
            self.loss = gluon.loss.L2Loss()

    def hybrid_forward(self, F, x):
        y = self.out(self.memory(self.words(x)))
        return self.loss(y, F.ones_like(y)), y
