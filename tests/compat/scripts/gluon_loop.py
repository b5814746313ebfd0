"""A Gluon training with a hook that the script makes, as for the old library: python gluon_loop.py OUT_DIR."""

import sys

import mxnet as mx
import numpy as np
import smdebug.mxnet as smd
from mxnet import autograd, gluon
from smdebug import SaveConfig, modes
from smdebug.mxnet.hook import Hook


def main(out_dir):
    mx.random.seed(2)
    net = gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(gluon.nn.Dense(6, in_units=4, activation="relu"), gluon.nn.Dense(3, in_units=6))
    net.initialize(mx.init.Xavier())
    hook = Hook(
        out_dir=out_dir,
        save_config=SaveConfig(save_interval=2),
        include_collections=["weights", "biases", "gradients", "first"],
    )
    hook.get_collection("first").add_block_tensors(net[0], inputs=True, outputs=True)
    hook.register_hook(net)
    loss_fn = gluon.loss.SoftmaxCrossEntropyLoss(prefix="crossloss0_")
    hook.register_block(loss_fn)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    rng = np.random.RandomState(0)
    hook.set_mode(modes.TRAIN)
    for step in range(5):
        x, y = mx.nd.array(rng.rand(8, 4)), mx.nd.array(rng.randint(0, 3, 8))
        with autograd.record():
            loss = loss_fn(net(x), y)
        loss.backward()
        trainer.step(8)
        smd.get_hook().save_scalar("number", step)
    hook.close()
    print(loss.mean().asscalar())


if __name__ == "__main__":
    main(sys.argv[1])
