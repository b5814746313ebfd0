"""An evaluation brings weights into another layout, in place, while the program goes on to train.

usage: python convolutions.py [NOTES.npz]
"""

import mxnet as mx
from mxnet import autograd, nd
from mxnet.gluon import nn
from nets import sgd
from notes import note, parameters, play, rng


def convolutions_with(hybridize):
    net = nn.HybridSequential(prefix="conv_")
    with net.name_scope():
        for channels in (32, 128, 128, 128):
            net.add(nn.Conv2D(channels, 3, padding=1, use_bias=False), nn.BatchNorm())
        net.add(nn.Dense(3))
    net.initialize(mx.init.Xavier())
    if hybridize:
        net.hybridize(static_alloc=True)
    trainer = sgd(net)
    for k in range(3):
        x = nd.array(rng.rand(2, 3, 16, 16))
        if k:
            net(nd.array(rng.rand(16, 3, 16, 16)))
        for name, parameter in parameters(net) if k else ():
            note(name, k, parameter.data())
        with autograd.record():
            loss = net(x).sum()
        loss.backward()
        trainer.step(2)
    return [net], 3, 2


def convolutions():
    return convolutions_with(hybridize=False)


def convolutions_hybridized():
    return convolutions_with(hybridize=True)


if __name__ == "__main__":
    play([convolutions, convolutions_hybridized])
