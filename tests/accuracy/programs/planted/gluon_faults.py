"""Gluon trainings of the digits, each with one thing wrong, by name."""

import sys

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn
from sklearn.datasets import load_digits

name = sys.argv[1]
mx.random.seed(0)
np.random.seed(0)
x, y = load_digits(return_X_y=True)
x, y = (x / 16).astype("float32"), y.astype("float32")
net = nn.HybridSequential()
net.add(nn.Dense(32, activation="relu"), nn.Dense(32, activation="relu"), nn.Dense(10))
net.initialize(mx.init.Zero() if name == "zero_weights" else mx.init.Xavier())
settings = {"learning_rate": 0.1}
trained = net[:2].collect_params() if name == "forgotten_block" else net.collect_params()
if name == "rate_ends_at_0":
    settings["lr_scheduler"] = mx.lr_scheduler.PolyScheduler(max_update=10, base_lr=0.1, final_lr=0)
trainer = gluon.Trainer(trained, "sgd", settings)
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
loader = gluon.data.DataLoader(gluon.data.ArrayDataset(x, y), 64, shuffle=True, last_batch="discard")
for epoch in range(3):
    for inputs, targets in loader:
        with autograd.record():
            loss = loss_fn(net(inputs), targets)
        loss.backward()
        # The gradients are a sum over the batch; who says 1 does not divide them.
        trainer.step(64 if name != "batch_size_of_1" else 1)
    print(epoch, float(loss.mean().asscalar()))
