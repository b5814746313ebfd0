"""A small Gluon net, its training, the facts of its steps that a hook has saved, and what rules find in them."""

from __future__ import annotations

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

import smd_agent.mxnet as smd
from smd_agent.rules.judging import Judging

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


def usage(out, *nets, **arguments):
    return hooked(out, *nets, include_collections=["usage"], **arguments)


def usage_of(hook):
    """All numbers of the collection, by name and global step."""
    trial = trial_of(hook)
    found = {}
    for name in trial.tensor_names(collection="usage"):
        values = {step: trial.tensor(name).value(step) for step in trial.tensor(name).steps()}
        assert {value.shape for value in values.values()} == {()}
        found[name.removeprefix("usage/")] = {step: float(value) for step, value in values.items()}
    return found


def of_first(found, what):
    """The numbers of the first step of a loss and the like, by the names of facts."""
    return {name.rpartition("/")[2]: values[0] for name, values in found.items() if name.startswith(f"{what}/")}


def train(net, compute, count=1):
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for step in range(count):
        with autograd.record():
            loss = compute(net, step)
        loss.backward()
        trainer.step(1)


def findings_of(hook, rule):
    judging = Judging(trial_of(hook), [rule])
    judging.take_new()
    return judging.verdict().findings
