"""Nets of the kinds of trainings, and what they have learned, as NumPy arrays."""

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn


def perceptron(prefix, inputs, hidden, outputs, activation="relu"):
    """A net of two layers."""
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Dense(hidden, activation=activation, in_units=inputs), nn.Dense(outputs, in_units=hidden))
    net.initialize(mx.init.Xavier())
    return net


def adam(*nets, rate=1e-2, kind="adam"):
    """A Trainer of all these nets."""
    parameters = gluon.ParameterDict()
    for net in nets:
        parameters.update(net.collect_params())
    return gluon.Trainer(parameters, kind, {"learning_rate": rate})


def gradients(*nets):
    """The nets' gradients by the names of their parameters."""
    return {name: parameter.grad().asnumpy() for net in nets for name, parameter in net.collect_params().items()}


def weights(*nets):
    """All that the nets have learned."""
    return [parameter.data().asnumpy() for net in nets for parameter in net.collect_params().values()]
