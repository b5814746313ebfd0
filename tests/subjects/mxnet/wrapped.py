"""Trains and evaluates while a profiler wraps what the agent has replaced, and prints what it counts.

argv: the profiler's file and what it wraps, the order in which wrappers are taken off.
"""

import hashlib
import sys
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from wrapping import Profiler

profiler = Profiler(*sys.argv[1:3])
order = sys.argv[3]
mx.random.seed(1)
np.random.seed(1)
digest = hashlib.sha1()


class Traced(gluon.HybridBlock):
    """Tells when it is traced."""

    def hybrid_forward(self, F, x):
        if F is mx.sym:
            profiler.wrap("tracing")
        return x * 2


class Net(gluon.Block):
    """Calls what it is told to before its layers, whose parameters get their shapes in the first forward."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.before = None
        with self.name_scope():
            self.layers = nn.HybridSequential()
            self.layers.add(nn.Dense(5, activation="tanh"), Traced(), nn.Dense(3))

    def forward(self, x):
        before, self.before = self.before, None
        if before is not None:
            before()
        return self.layers(x)


def batch():
    return nd.array(np.random.rand(8, 6))


def train(between=None, backward=lambda loss: loss.backward()):
    with autograd.record():
        loss = criterion(net(batch()), nd.ones((8, 3)))
    if between is not None:
        between()
    backward(loss)
    trainer.step(8)
    digest.update(loss.asnumpy().tobytes())


def evaluate(between=None):
    output = net(batch())
    if between is not None:
        between()
    digest.update(criterion(output, nd.ones((8, 3))).asnumpy().tobytes())


def inside():
    profiler.wrap("inside")
    try:
        nd.zeros(1).backward()
    except mx.MXNetError as error:
        print(type(error).__name__)


profiler.wrap("imported")
net, criterion = Net(prefix="net_"), gluon.loss.L2Loss(prefix="l2_")
net.initialize(mx.init.Xavier())
net.hybridize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
profiler.wrap("armed")
net.before = lambda: profiler.wrap("opened")
train()
train()
profiler.wrap("found")
train(inside)
train(backward=lambda loss: autograd.backward([loss]))
evaluate(lambda: profiler.wrap("evaluating"))
evaluate()
for _ in range(2):
    train(lambda: profiler.take_off(20, order))
profiler.take_off(20, order)
evaluate(lambda: profiler.take_off(20, order))
train()
train(lambda: profiler.take_off(1000, order))
train()
for _, parameter in sorted(net.collect_params().items()):
    digest.update(parameter.data().asnumpy().tobytes())
print(profiler.told())
print(digest.hexdigest())
