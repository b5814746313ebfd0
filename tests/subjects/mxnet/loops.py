"""One training loop over nets that are run in every way Gluon has; knows nothing of the agent.

usage: python loops.py [NOTES.npz]
"""

import functools

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn
from notes import batch, note, noting, parameters, play

KINDS = {
    "imperative": None,
    "hybridized": {},
    "static": {"static_alloc": True},
    "static_shape": {"static_alloc": True, "static_shape": True},
    "inlined": {"inline_limit": 100},
}


class Net(gluon.HybridBlock):
    """Two layers with a dropout between them."""

    def __init__(self, sizes, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.fc1 = nn.Dense(5, activation="tanh", in_units=sizes[0])
            self.drop = nn.Dropout(0.5)
            self.fc2 = nn.Dense(3, in_units=sizes[1])

    def hybrid_forward(self, F, x):
        return self.fc2(self.drop(self.fc1(x)))


def loop(kind, deferred):
    net = Net((0, 0) if deferred else (6, 5), prefix="net_")
    net.initialize(mx.init.Xavier())
    if KINDS[kind] is not None:
        net.hybridize(**KINDS[kind])
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss(prefix="crossloss0_")
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    for k in range(4):
        x, y = batch()
        if noting and (k or not deferred):
            for name, parameter in parameters(net):
                note(name, k, parameter.data())
        with autograd.record():
            out = net(x)
            loss = loss_fn(out, y)
        if k == 0 and deferred:
            # Their initial values, which the forward has just given them.
            for name, parameter in parameters(net):
                note(name, k, parameter.data())
        loss.backward()
        note("net_input_0", k, x)
        note("net_output_0", k, out)
        note("crossloss0_output_0", k, loss)
        note("crossloss0_input_1", k, y)
        for name, parameter in parameters(net):
            note("gradient/" + name, k, parameter.grad())
        trainer.step(8)
    x, y = batch()
    out = net(x)
    note("net_output_0", 0, out, "EVAL")
    note("crossloss0_output_0", 0, loss_fn(out, y), "EVAL")
    return [net], 4, 1


SCENES = []
for kind in KINDS:
    for deferred in (False, True):
        scene = functools.partial(loop, kind, deferred)
        scene.__name__ = f"{kind}{' deferred' * deferred}"
        SCENES.append(scene)

if __name__ == "__main__":
    play(SCENES)
