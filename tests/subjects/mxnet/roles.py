"""Gluon trainings whose parameters and losses are not told by their names.

usage: python roles.py SCENE; prints the losses and a digest of the weights, which a run with the agent must leave
alike.
"""

import hashlib
import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

digest = hashlib.sha1()


def rows(k=0, n=8, width=4):
    return nd.array(np.random.RandomState(k).rand(n, width))


def fit(net, trained, evaluated=None, steps=3, parameters=None):
    trainer = gluon.Trainer(parameters or net.collect_params(), "sgd", {"learning_rate": 0.05})
    for k in range(steps):
        with autograd.record():
            loss = trained(rows(k))
        loss.backward()
        trainer.step(8)
        print("TRAIN", repr(float(loss.mean().asscalar())))
        if evaluated is not None:
            print("EVAL", repr(float(evaluated(rows(10 + k)).mean().asscalar())))
    for parameter in net.collect_params().values():
        digest.update(parameter.data().asnumpy().tobytes())


def dense(units=2, prefix="net_"):
    net = nn.Dense(units, in_units=4, prefix=prefix)
    net.initialize(mx.init.Xavier())
    return net


def normalised():
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(4), nn.BatchNorm(), nn.PReLU(), nn.Dense(2))
        frozen = nn.Dense(2, prefix="frozen_")
        frozen.collect_params().setattr("grad_req", "null")
        net.add(frozen)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    loss = gluon.loss.L2Loss()
    fit(net, lambda x: loss(net(x), nd.ones((8, 2))), lambda x: loss(net(x), nd.ones((8, 2))))


class Crf(gluon.Block):
    """Is trained by a method, and has a parameter of its own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.emb, self.tag = nn.Dense(4), nn.Dense(3)
            self.trans = self.params.get("transition", shape=(3, 3))

    def nll(self, x):
        return nd.dot(self.tag(self.emb(x)), self.trans.data()).square().mean()

    def forward(self, x):
        return self.tag(self.emb(x))


def trained_by_a_method():
    net = Crf(prefix="crf_")
    net.initialize(mx.init.Xavier())
    net(rows())
    fit(net, net.nll)


def eleventh_loss():
    net, loss = dense(), [gluon.loss.L2Loss() for _ in range(11)][-1]
    fit(net, lambda x: loss(net(x), nd.ones((8, 2))), lambda x: loss(net(x), nd.ones((8, 2))))


def prefixed_loss():
    net, loss = dense(), gluon.loss.L2Loss(prefix="mine_")
    fit(net, lambda x: loss(net(x), nd.ones((8, 2))), lambda x: loss(net(x), nd.ones((8, 2))))


class Criterion(gluon.loss.Loss):
    def __init__(self, **kwargs):
        super().__init__(None, 0, **kwargs)

    def hybrid_forward(self, F, a, b):
        return F.mean(F.square(a - b), axis=1)


def criterion():
    net, loss = dense(), Criterion()
    fit(net, lambda x: loss(net(x), nd.ones((8, 2))).mean(), lambda x: loss(net(x), nd.ones((8, 2))).mean())


class Objective(gluon.Block):
    """Is no loss of Gluon's."""

    def forward(self, a, b):
        return (a - b).square().mean()


def objective():
    net, loss = dense(), Objective()
    fit(net, lambda x: loss(net(x), nd.ones((8, 2))) * 2, lambda x: loss(net(x), nd.ones((8, 2))) * 2)


def new_loss_each_step():
    net = dense()

    def three(x):
        out = net(x)
        near = gluon.loss.L2Loss()
        made = near(out, nd.ones((8, 2))).mean()
        far = gluon.loss.L2Loss()
        made = made + far(out, nd.zeros((8, 2))).mean()
        return made + gluon.loss.L1Loss()(out, nd.ones((8, 2))).mean()

    fit(net, three, steps=13)


def two_kept_losses():
    net, first, second = dense(), gluon.loss.L2Loss(), gluon.loss.L2Loss()
    count = iter(range(9))

    def loss(x):
        # The second one is called in later steps only.
        out = net(x)
        return first(out, nd.ones((8, 2))) + (second(out, nd.zeros((8, 2))) if next(count) else 0)

    fit(net, loss)


class Contrast(gluon.loss.Loss):
    """Owns the net, one layer of which is called output."""

    def __init__(self, **kwargs):
        super().__init__(None, 0, **kwargs)
        with self.name_scope():
            self.output = nn.Dense(2, in_units=4, prefix="output_")

    def hybrid_forward(self, F, x):
        return F.mean(F.square(self.output(x)), axis=1)


def loss_owns_the_net():
    loss = Contrast(prefix="contrastloss0_")
    loss.initialize(mx.init.Xavier())
    fit(loss, loss)


mx.random.seed(1)
globals()[sys.argv[1]]()
print(digest.hexdigest())
