"""A Gluon program that looks at who has called it, and fails now and then, in saved steps and in others."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shared"))

import mxnet as mx
from callers import callers, failing
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

how = ""


class Inner(nn.HybridBlock):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.fc = nn.Dense(3, in_units=5)

    def hybrid_forward(self, F, x):
        if how == "look":
            callers()
        if how == "fail":
            raise KeyError("mine")
        return self.fc(x)


class Net(nn.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.inner = Inner()
            self.hybrid = Inner()

    def forward(self, x):
        if how == "look":
            callers()
        return self.inner(x) + self.hybrid(x)


mx.random.seed(0)
net = Net()
net.initialize()
failing("trainer", gluon.Trainer, 3, "sgd")
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
criterion = gluon.loss.L2Loss()
x, y = nd.random.normal(shape=(4, 5)), nd.random.normal(shape=(4, 3))
for step in range(4):
    print("step", step)
    if step == 2:
        net.hybrid.hybridize()
    with autograd.record():
        how = "fail"
        failing("forward", net, x)
        failing("part", net.inner, x)
        how = "look"
        out = net(x)
        how = ""
        failing("wrong", net, 3)
        failing("loss", criterion, out, 3)
        loss = criterion(out, y)
    failing("backward", autograd.backward, [loss], [3, 4])
    failing("method", nd.zeros(3).backward)
    loss.backward()
    failing("step", trainer.step, "x")
    trainer.step(4)
print(sum(float(p.data().sum().asscalar()) for p in net.collect_params().values()))
