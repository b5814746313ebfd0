"""Trains a Gluon MLP to tell which machine part is loose from eight sensors."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

mx.random.seed(4)
np.random.seed(4)

rng = np.random.RandomState(4)
centres = rng.normal(0, 1, (6, 8))
part = rng.randint(0, 6, 900)
readings = (centres[part] + rng.normal(0, 0.6, (900, 8))).astype("float32")
train = gluon.data.DataLoader(gluon.data.ArrayDataset(readings[:700], part[:700]), batch_size=50, shuffle=True)
x_test, y_test = mx.nd.array(readings[700:]), part[700:]

net = nn.HybridSequential()
net.add(nn.Dense(48, activation="relu"), nn.Dense(24, activation="relu"), nn.Dense(6))
net.initialize(mx.init.Xavier())
net.hybridize()
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})

for epoch in range(8):
    total = 0.0
    for data, label in train:
        with autograd.record():
            loss = loss_fn(net(data), label)
        loss.backward()
        trainer.step(1)
        total += loss.mean().asscalar()
    right = (net(x_test).argmax(axis=1).asnumpy() == y_test).mean()
    print(f"epoch {epoch} loss {total / len(train):.3f} test accuracy {right:.3f}")
