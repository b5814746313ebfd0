"""Trainings that copy, pickle, save and compare what they train, wherever their own code runs.

What comes of it is part of the digest that is printed. Knows nothing of the agent.

usage: python copying_scenes.py [NOTES.npz]
"""

import copy
import hashlib
import logging
import os
import pickle
import sys
import tempfile

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn
from mxnet.gluon.contrib.estimator import BatchEnd, Estimator
from mxnet.gluon.contrib.estimator import TrainBegin as EpochHandler
from notes import batch, note, play, rng

FILES = tempfile.mkdtemp()
SEEN = []
OPERATIONS = []


def content(write):
    """Return what a function has written into a file, or the error that it has raised."""
    path = os.path.join(FILES, "file")
    try:
        write(path)
    except Exception as error:
        return f"{type(error).__name__} {error}".encode()
    found = b""
    for name in sorted(os.listdir(FILES)):
        with open(os.path.join(FILES, name), "rb") as file:
            found += name.encode() + file.read()
        os.remove(os.path.join(FILES, name))
    return found


def pickled(thing):
    def write(path):
        with open(path, "wb") as file:
            pickle.dump(thing, file)

    return content(write)


def copied(net):
    # An operation has no copies.
    has_operation = any(getattr(part, "_cached_op", None) is not None for part in parts(net))
    return b"" if has_operation else pickled(copy.deepcopy(net))


def number_of(operation):
    """Return which of the operations an operation is that have been seen so far."""
    if all(operation is not known for known in OPERATIONS):
        OPERATIONS.append(operation)
    return str([operation is known for known in OPERATIONS]).encode()


def look(where, net, trainer=None):
    """Take note of all that can be seen of a net."""
    found = [where.encode(), repr(net).encode(), pickled(net), copied(net), content(net.save_parameters)]
    found += [content(net.save), str([sorted(vars(part)) for part in parts(net)]).encode()]
    for part in parts(net):
        found.append(str([len(part._forward_hooks), len(part._forward_pre_hooks), [*part._children]]).encode())
        found.append(str([type(value).__name__ for value in vars(part).values()]).encode())
        found.append(number_of(getattr(part, "_cached_op", None)))
    if trainer is not None:
        found += [pickled(trainer), content(trainer.save_states), str(sorted(vars(trainer))).encode()]
        found.append(str(sorted(vars(trainer._optimizer))).encode())
    SEEN.append(hashlib.sha1(b"|".join(found)).hexdigest())


def parts(net):
    return [net, *(part for child in net._children.values() for part in parts(child))]


class Loud(autograd.Function):
    """Looks at a net in the backward pass."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return x * 1

    def backward(self, gradient):
        # Whoever waits for values here waits for ever.
        SEEN.append(str([sorted(vars(part)) for part in parts(self.net())]))
        return gradient * 1


class Net(gluon.Block):
    """Looks at itself while it runs."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.fc1, self.fc2 = nn.Dense(4, in_units=6), nn.Dense(3, in_units=4)

    def forward(self, x):
        look("forward", self)
        hidden = Loud(lambda: self)(self.fc1(x).relu())
        look("amid", self)
        return self.fc2(hidden)


class Hybrid(gluon.HybridBlock):
    """The same layers, run as one operation."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.fc1, self.fc2 = nn.Dense(4, in_units=6), nn.Dense(3, in_units=4)

    def hybrid_forward(self, F, x):
        look("traced", self)
        return self.fc2(F.relu(self.fc1(x)))


class SGD(mx.optimizer.SGD):
    """Looks at a net while it updates."""

    net = None

    def update(self, index, weight, grad, state):
        look("update", SGD.net)
        super().update(index, weight, grad, state)

    def update_multi_precision(self, index, weight, grad, state):
        look("updates", SGD.net)
        super().update_multi_precision(index, weight, grad, state)


class Distance(gluon.loss.Loss):
    """Looks at a net, and at itself."""

    net = None

    def __init__(self, **kwargs):
        super().__init__(None, 0, **kwargs)

    def hybrid_forward(self, F, x, y):
        look("loss", Distance.net)
        look("self", self)
        return F.softmax_cross_entropy(x, y)


def told(scene):
    print(scene, hashlib.sha1("".join(SEEN).encode()).hexdigest(), len(SEEN), flush=True)
    SEEN.clear()


def before(block, _):
    look("before", block)


def after(block, *_):
    look("after", block)


def watch(net):
    """Have the blocks of a net looked at before and after their calls, by hooks of Gluon's."""
    for part in parts(net):
        # Gluon's own keys are numbers of objects.
        part._forward_pre_hooks["before"], part._forward_hooks["after"] = before, after


def train(name, net, optimizer=None):
    net.initialize(mx.init.Xavier())
    loss_function = Distance(prefix=f"{name}loss0_")
    SGD.net = Distance.net = net
    trainer = gluon.Trainer(net.collect_params(), optimizer or SGD(learning_rate=0.1, momentum=0.9))
    for k in range(3):
        x, y = batch()
        for key, parameter in sorted(net.collect_params().items()):
            note(key, k, parameter.data())
        with autograd.record():
            output = net(x)
            look("output", net, trainer)
            loss = loss_function(output, y)
        look("before backward", net, trainer)
        loss.backward()
        look("before update", net, trainer)
        for key, parameter in sorted(net.collect_params().items()):
            note("gradient/" + key, k, parameter.grad())
        note(f"{name}loss0_output_0", k, loss)
        trainer.step(8)
        look("after update", net, trainer)
    told(name)
    SGD.net = Distance.net = None
    return [net], 3, 0


def looked_at_everywhere():
    return train("block", Net(prefix="block_"))


def hooked():
    net = Net(prefix="hooked_")
    watch(net)
    return train("hooked", net)


def run_as_one_operation():
    net = Hybrid(prefix="hybrid_")
    net.hybridize()
    # Gluon warns about hooks only where they are there before, and runs those of the outermost block.
    net._forward_pre_hooks["before"], net._forward_hooks["after"] = before, after
    return train("hybrid", net)


class Asked(SGD):
    """Looks at a net when rates are asked for."""

    def _get_lrs(self, indices):
        look("rates", SGD.net)
        return super()._get_lrs(indices)


def scheduled():
    schedule = mx.lr_scheduler.FactorScheduler(step=1, factor=0.9, base_lr=0.1)
    return train("rates", Net(prefix="rates_"), Asked(learning_rate=None, momentum=0.9, lr_scheduler=schedule))


class Looking(EpochHandler, BatchEnd):
    """A handler of an Estimator's that looks at its net."""

    def train_begin(self, estimator, *args, **kwargs):
        look("train begin", estimator.net, estimator.trainer)

    def batch_end(self, estimator, *args, **kwargs):
        look("batch end", estimator.net, estimator.trainer)


def estimator():
    logging.disable(logging.CRITICAL)
    net = Net(prefix="est_")
    net.initialize(mx.init.Xavier())
    SGD.net = Distance.net = net
    trainer = gluon.Trainer(net.collect_params(), SGD(learning_rate=0.1))
    rows = mx.nd.array(rng.rand(24, 6)), mx.nd.array(rng.randint(0, 3, 24))
    fitter = Estimator(net, Distance(prefix="estloss0_"), trainer=trainer, context=mx.cpu())
    data = gluon.data.DataLoader(gluon.data.ArrayDataset(*rows), batch_size=8)
    fitter.fit(train_data=data, epochs=1, event_handlers=[Looking()])
    told("estimator")
    SGD.net = Distance.net = None
    return [net], 3, 0


SCENES = [looked_at_everywhere, hooked, run_as_one_operation, scheduled, estimator]

if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    play(SCENES)
