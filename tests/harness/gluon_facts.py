"""A small Gluon net, its training, and the facts of its steps that a hook has saved."""

from __future__ import annotations

import mxnet as mx
import numpy as np
from mxnet import autograd, nd
from mxnet.gluon import nn

import smd_agent.mxnet as smd

EVERY = smd.SaveConfig(save_interval=1)
COLLECTIONS = ["updates", "optimizer", "input_digests", "parameters"]
TRAIN = smd.modes.TRAIN


def hooked(out, *nets, **arguments):
    arguments = {"save_config": EVERY, "include_collections": COLLECTIONS, **arguments}
    hook = smd.Hook(out, **arguments)
    for net in nets:
        hook.register_block(net)
    hook.set_mode(TRAIN)
    return hook


def trial_of(hook):
    hook.close()
    return smd.create_trial(hook.out_dir)


def make_net(prefix="net_", ctx=None, hybridize=False, dtype="float32"):
    mx.random.seed(1)
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Dense(5, in_units=6, activation="relu", dtype=dtype), nn.Dense(3, in_units=5, dtype=dtype))
    net.initialize(mx.init.Xavier(), ctx=ctx)
    if hybridize:
        net.hybridize()
    return net


def rows(seed, dtype="float32", ctx=None):
    return nd.array(np.random.RandomState(seed).rand(8, 6), dtype=dtype, ctx=ctx or mx.cpu(0))


def arrays(net):
    return {
        name: parameter.list_data()[0].asnumpy().astype(np.float64)
        for name, parameter in net.collect_params().items()
        if parameter.grad_req != "null"
    }


def backward(net, x):
    with autograd.record():
        loss = (net(x) ** 2).mean()
    loss.backward()


def values(trial, name):
    tensor = trial.tensor(name)
    return [float(tensor.value(step, mode=TRAIN)) for step in tensor.steps(mode=TRAIN)]
