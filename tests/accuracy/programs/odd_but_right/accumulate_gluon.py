"""Trains a Gluon network with gradients added up over four small batches before each step."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

mx.random.seed(83)
rng = np.random.RandomState(83)
SIZE, ADD = 10, 4

x = rng.normal(0, 1, (800, 6)).astype("float32")
y = ((x[:, 0] * x[:, 1] + x[:, 2]) > 0).astype("float32")
train = gluon.data.DataLoader(gluon.data.ArrayDataset(x[:600], y[:600]), batch_size=SIZE, shuffle=True)

net = nn.HybridSequential()
net.add(nn.Dense(48, activation="relu"), nn.Dense(2))
net.initialize(mx.init.Xavier())
params = net.collect_params()
params.setattr("grad_req", "add")
trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.2, "momentum": 0.9})
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()

for epoch in range(12):
    total = 0.0
    for i, (data, label) in enumerate(train):
        with autograd.record():
            loss = loss_fn(net(data), label)
        loss.backward()
        total += loss.mean().asscalar()
        if (i + 1) % ADD == 0:
            trainer.step(SIZE * ADD)
            params.zero_grad()
    if epoch % 3 == 2:
        right = (net(mx.nd.array(x[600:])).argmax(axis=1).asnumpy() == y[600:]).mean()
        print(f"epoch {epoch + 1} loss {total / len(train):.3f} accuracy {right:.3f}")
