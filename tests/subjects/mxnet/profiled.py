"""Trains with a profiler that wraps ``NDArray.backward`` in a saved step, and prints what it counts.

argv: "alike" wraps as users of ``functools.wraps`` do, "bare" without.
"""

import functools
import sys

import mxnet as mx
import nets
import numpy as np
from mxnet import autograd, nd
from mxnet.ndarray import NDArray

counts = {"backward": 0}


def wrap():
    original = NDArray.backward

    def counted(*args, **kwargs):
        counts["backward"] += 1
        return original(*args, **kwargs)

    NDArray.backward = functools.wraps(original)(counted) if sys.argv[1] == "alike" else counted


mx.random.seed(1)
np.random.seed(1)
net = nets.two_layers("net_")
trainer = nets.sgd(net)
for step in range(6):
    with autograd.record():
        loss = net(nd.array(np.random.rand(8, 6))).square().mean(axis=1)
    if step == 2:
        wrap()
    loss.backward()
    trainer.step(8)
print(counts, [round(float(value), 6) for value in net[1].bias.data().asnumpy()])
