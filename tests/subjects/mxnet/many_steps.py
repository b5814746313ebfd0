"""A training of many short steps, with evaluations in between; told to, it notes the loss of each."""

import hashlib
import os

import mxnet as mx
from mxnet import autograd, gluon, nd

mx.random.seed(1)
net = gluon.nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(gluon.nn.Dense(32, activation="relu"), gluon.nn.Dense(4))
net.initialize(mx.init.Xavier())
net.hybridize()
criterion = gluon.loss.L2Loss(prefix="l2_")
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
notes = os.open(os.environ.get("NOTES", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for step in range(int(os.environ.get("STEPS", "30"))):
    x, y = nd.random.uniform(shape=(8, 16)), nd.random.uniform(shape=(8, 4))
    with autograd.record():
        loss = criterion(net(x), y)
    loss.backward()
    trainer.step(8)
    os.write(notes, f"{float(loss.mean().asscalar())!r}\n".encode())
    if step % 10 == 9:
        print(criterion(net(x), y).mean().asscalar())
weights = b"".join(parameter.data().asnumpy().tobytes() for parameter in net.collect_params().values())
print(loss.mean().asscalar(), hashlib.sha1(weights).hexdigest())
