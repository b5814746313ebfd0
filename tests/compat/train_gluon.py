"""The same Gluon training with the hook of either library; both MXNet hooks are made alike.

usage: python train_gluon.py KIND OUT_DIR     by an interpreter that has the original library
"""

import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

KINDS = ("imperative", "hybridized", "reduced")
STEPS = 5


def train(smd, kind, out_dir):
    """Train with a hook of the library ``smd`` that saves everything there is."""
    mx.random.seed(1)
    np.random.seed(1)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(
            nn.Conv2D(4, 3, in_channels=1, activation="relu"),
            nn.BatchNorm(in_channels=4),
            nn.Flatten(),
            nn.Dense(5, in_units=64, activation="tanh"),
            nn.Dense(3, in_units=5),
        )
    net.initialize(mx.init.Xavier())
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss(prefix="crossloss0_")
    what = {"save_all": True}
    if kind == "reduced":
        reductions = smd.ReductionConfig(reductions=["min", "max", "mean", "sum"], norms=["l1", "l2"])
        what = {"include_collections": ["weights", "biases", "gradients"], "reduction_config": reductions}
    hook = smd.Hook(str(out_dir), save_config=smd.SaveConfig(save_interval=1), **what)
    hook.register_block(net)
    hook.register_block(loss_fn)
    if kind == "hybridized":
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})
    rng = np.random.RandomState(0)
    for _ in range(STEPS):
        x, y = mx.nd.array(rng.rand(8, 1, 6, 6)), mx.nd.array(rng.randint(0, 3, 8))
        with autograd.record():
            loss = loss_fn(net(x), y)
        loss.backward()
        trainer.step(8)
    hook.close()


if __name__ == "__main__":
    import smdebug.mxnet

    train(smdebug.mxnet, *sys.argv[1:])
