"""A training of 25 steps that ends in several ways, and writes down the weights that it leaves."""

import argparse
import signal
import sys
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from ends import end_by

parser = argparse.ArgumentParser()
parser.add_argument("--end", default="returns")
parser.add_argument("--amid", action="store_true")
parser.add_argument("--change", default="nothing")
parser.add_argument("--function", action="store_true")
args = parser.parse_args()


def make():
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(8, activation="relu"), gluon.nn.Dropout(0.2), gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier())
    return net


def leave(net):
    left = {name: one.data().asnumpy() for name, one in net.collect_params().items()}
    np.savez("weights.npz", **left)
    for one in left.values():
        print(one.astype("float64").sum())
    print(nd.random.uniform(shape=(1,)).asscalar())


def train(net):
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.1})
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    try:
        for number in range(25):
            if number == 17 and not args.amid:
                end_by(args.end)
            x, y = nd.random.normal(shape=(6, 5)), nd.array(np.random.randint(0, 3, 6))
            with autograd.record():
                loss = criterion(net(x), y)
            loss.backward()
            if number == 17 and args.amid:
                end_by(args.end)
            trainer.step(6)
            if number == 12:
                net.save_parameters("best.params")
        print(net(x).sum().asscalar())
        if args.change == "loaded":
            net.load_parameters("best.params")
        elif args.change == "set":
            weight = net[2].weight
            weight.set_data(weight.data() * 0.9)
    finally:
        leave(net)


mx.random.seed(0)
np.random.seed(0)
if args.end == "SIGTERM":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
if args.function:
    train(make())
else:
    model = make()
    train(model)
