"""Collaborative filtering: sparse embeddings trained on two contexts, with early stopping by the error."""

from collections import deque

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from mxnet.gluon.utils import split_and_load


class MFBlock(gluon.HybridBlock):
    def __init__(self, users, items, factors, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.user = nn.Embedding(users, factors, sparse_grad=True)
            self.item = nn.Embedding(items, factors, sparse_grad=True)
            self.bias = self.params.get("bias", shape=(1,), init="zeros")

    def hybrid_forward(self, F, users, items, bias):
        return F.broadcast_add((self.user(users) * self.item(items)).sum(axis=1), bias)


class EarlyStop(Exception):
    pass


def ratings(n=400, users=30, items=20):
    rng = np.random.RandomState(3)
    u, v = rng.normal(size=(users, 3)), rng.normal(size=(items, 3))
    who, what = rng.randint(users, size=n), rng.randint(items, size=n)
    return who.astype("float32"), what.astype("float32"), (u[who] * v[what]).sum(1).astype("float32") + 3


def fit(ctx):
    mx.random.seed(5)
    net = MFBlock(30, 20, 4, prefix="mf_")
    net.initialize(mx.init.Normal(0.3), ctx=ctx)
    criterion = gluon.loss.L2Loss()
    trainer = gluon.Trainer(net.collect_params(), mx.optimizer.Adam(learning_rate=0.05, lazy_update=True))
    who, what, score = ratings()
    history = deque(maxlen=2)
    for epoch in range(6):
        total = 0.0
        for start in range(0, 320, 80):
            rows = slice(start, start + 80)
            parts = [split_and_load(nd.array(column[rows]), ctx) for column in (who, what, score)]
            with autograd.record():
                losses = [criterion(net(u, i), s) for u, i, s in zip(*parts)]
            autograd.backward(losses)
            trainer.step(80)
            total += sum(loss.sum().asscalar() for loss in losses)
        predicted = net(nd.array(who[320:], ctx=ctx[0]), nd.array(what[320:], ctx=ctx[0])).asnumpy()
        error = float(np.sqrt(((predicted - score[320:]) ** 2).mean()))
        print(f"Epoch [{epoch}], loss {total / 320:.6f}, validation RMSE {error:.5f}")
        if len(history) == 2 and error > max(history):
            raise EarlyStop(f"the error rises after epoch {epoch}")
        history.append(error)
    return net


net = None
try:
    net = fit([mx.cpu(0), mx.cpu(1)])
except EarlyStop as reason:
    print("stopped:", reason)
else:
    net.save_parameters("mf.params")
print(mx.nd.random.uniform(shape=(1,)).asscalar())
raise RuntimeError("no server to upload the embeddings to")
