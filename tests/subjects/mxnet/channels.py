"""Train Gluon models one step each, some of whose channels are dead. It knows nothing of the agent.

Argument: which model.
"""

import sys

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn

mx.random.seed(0)
kind = sys.argv[1]
net = nn.HybridSequential(prefix="net_")
with net.name_scope():
    if kind.startswith("images"):
        net.add(nn.Conv2D(8, 3, prefix="conv_"), nn.BatchNorm(prefix="norm_"), nn.Activation("relu", prefix="act_"))
        net.add(nn.MaxPool2D(prefix="pool_"), nn.Dense(5, activation="sigmoid", prefix="gates_"))
        x = mx.nd.random.normal(shape=(4, 3, 9, 9))
    elif kind == "signals":
        net.add(nn.Conv1D(8, 3, prefix="conv_"), nn.Activation("relu", prefix="act_"))
        x = mx.nd.random.normal(shape=(4, 3, 30))
    elif kind == "tokens":
        net.add(
            nn.Embedding(9, 6, prefix="conv_"), nn.Dense(8, flatten=False, prefix="fc_"), nn.LayerNorm(prefix="ln_")
        )
        net.add(nn.Activation("relu", prefix="act_"))
        x = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    else:
        net.add(nn.Conv1D(8, 3, prefix="conv_"), nn.Dense(4, flatten=False, prefix="fc_"))
        net.add(nn.Activation("relu", prefix="act_"))
        x = mx.nd.random.normal(shape=(4, 3, 30))
net.initialize()
net(x)
for name, values in {"norm_beta": -100, "ln_beta": -100}.items():
    for parameter in net.collect_params(f".*{name}").values():
        data = parameter.data()
        data[:3] = values
        parameter.set_data(data)
if kind.startswith("images"):
    net.collect_params(".*gates_bias")["net_gates_bias"].set_data(mx.nd.array([60, 60, 0, 0, 0]))
if kind == "images_hybrid":
    net.hybridize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
loss = gluon.loss.L2Loss()
with autograd.record():
    y = net(x)
    error = loss(y, mx.nd.zeros_like(y))
error.backward()
trainer.step(4)
mx.nd.waitall()
