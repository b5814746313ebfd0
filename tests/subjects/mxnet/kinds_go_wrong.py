"""Trainings of several kinds, each of which goes wrong in its step 3."""

from __future__ import annotations

import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

STEPS, AT = 6, 3
squares = gluon.loss.L2Loss()


def net_of(units, inputs, prefix="net_", ctx=None):
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Dense(units, in_units=inputs))
    net.initialize(ctx=ctx)
    net.hybridize()
    return net


def trainer_of(net):
    return gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})


def batch():
    return nd.random.normal(shape=(4, 5))


def turns():
    """Of two Trainers that take turns, the second one's loss goes wrong."""
    first, second = net_of(3, 5, "first_"), net_of(1, 3, "second_")
    trainers = [trainer_of(second), trainer_of(first)]
    for step in range(STEPS):
        x = batch()
        with autograd.record():
            loss = squares(second(first(x).detach()), nd.ones((4, 1)))
        loss.backward()
        trainers[0].step(4)
        with autograd.record():
            loss = squares(nd.log(second(first(x)) ** 2 * (step != AT)), nd.ones((4, 1)))  # HERE
        loss.backward()
        trainers[1].step(4)


def alone():
    """The program updates the weights itself, without a Trainer."""
    net = net_of(3, 5)
    for step in range(STEPS):
        with autograd.record():
            loss = squares(net(batch()), nd.ones((4, 3)) / (step != AT))  # HERE
        loss.backward()
        for one in net.collect_params().values():
            one.data()[:] = one.data() - 0.01 * one.grad()


def contexts():
    """On two contexts, of which the second is given an infinity."""
    where = [mx.cpu(0), mx.cpu(1)]
    net = net_of(3, 5, ctx=where)
    trainer = trainer_of(net)
    for step in range(STEPS):
        x = np.random.RandomState(step).rand(8, 5).astype("float32")
        if step == AT:
            x[6] = np.inf
        with autograd.record():
            parts = gluon.utils.split_and_load(nd.array(x), where)
            losses = [squares(net(part), nd.ones((4, 3), ctx=part.context)) for part in parts]
        autograd.backward(losses)
        trainer.step(8)


def loaded():
    """A block that has a graph and no code."""
    data, weight = mx.sym.var("data"), mx.sym.var("weight")
    inside = mx.sym.FullyConnected(data, weight, num_hidden=3, no_bias=True, name="inside")
    net = gluon.SymbolBlock([mx.sym.log(mx.sym.abs(inside, name="size"), name="logs")], [data])
    net._name = "net"
    net.initialize(mx.init.Normal(0.1))
    trainer = trainer_of(net)
    for step in range(STEPS):
        x = batch()
        if step == AT:
            x[2] = 0
        with autograd.record():
            loss = squares(net(x), nd.ones((4, 3)))
        loss.backward()
        trainer.step(4)


def numpy():
    """By way of mx.np."""
    mx.npx.set_np()
    net = net_of(3, 5)
    trainer = trainer_of(net)
    for step in range(STEPS):
        x = mx.np.random.normal(size=(4, 5))
        with autograd.record():
            loss = squares(net(x) / (step != AT), mx.np.ones((4, 3)))  # HERE
        loss.backward()
        trainer.step(4)


def roots(net, inputs, differentiate=None):
    """Gradients go wrong in the step before, as those of a root at 0."""
    trainer = trainer_of(net)
    for step in range(STEPS):
        x = inputs()
        with autograd.record():
            found = net(x)
            if differentiate is not None:
                found = differentiate(found, x)
            loss = squares(nd.sqrt(found**2 * (step != AT - 1)), nd.ones_like(found))  # HERE
        loss.backward()
        trainer.step(4)
        for one in net.collect_params().values():
            if one.grad_req == "add":
                one.zero_grad()


def penalty():
    """A loss has the gradient of an output in it."""

    def with_penalty(found, x):
        given = x.copy()
        given.attach_grad()
        again = net(given)
        return found + (autograd.grad(again, given, create_graph=True, retain_graph=True)[0] ** 2).sum()

    net = net_of(3, 5)
    net.hybridize(False)
    roots(net, batch, with_penalty)


class Own(autograd.Function):
    """A function with a gradient of its own, which may go wrong."""

    def __init__(self, good):
        super().__init__()
        self.good = good

    def forward(self, x):
        return x * 2

    def backward(self, gradient):
        return gradient * self.good / self.good


def own():
    net = net_of(3, 5)
    trainer = trainer_of(net)
    for step in range(STEPS):
        with autograd.record():
            loss = squares(Own(step != AT - 1)(net(batch())), nd.ones((4, 3)))  # HERE
        loss.backward()
        trainer.step(4)


def added():
    net = net_of(3, 5)
    net.collect_params().setattr("grad_req", "add")
    roots(net, batch)


def sparse():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Embedding(10, 4, sparse_grad=True))
    net.initialize()
    roots(net, lambda: nd.array([1, 2, 3, 4]))


def convolutions():
    """All goes well; each loss is printed."""
    net = nn.HybridSequential()
    for _ in range(2):
        net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Dropout(0.3))
    net.add(nn.Dense(3))
    net.initialize()
    net.hybridize()
    trainer = trainer_of(net)
    for _ in range(STEPS):
        with autograd.record():
            loss = squares(net(nd.random.normal(shape=(4, 3, 16, 16))), nd.ones((4, 3)))
        loss.backward()
        print(loss.asnumpy().tobytes().hex())
        trainer.step(4)


mx.random.seed(3)
globals()[sys.argv[1]]()
