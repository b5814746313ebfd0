"""
Pretrain a feature extractor on plenty of (shifted, noisy) digits of ten classes, then reuse it
for scans of another device with only a few labelled examples per class.
"""
import os
import tempfile

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn
from sklearn.datasets import load_digits

mx.random.seed(5)
np.random.seed(5)


class Classifier(gluon.HybridBlock):
    def __init__(self, classes, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential()
            self.features.add(nn.Dense(128, activation="relu", in_units=64),
                              nn.Dense(64, activation="relu", in_units=128),
                              nn.Dense(24, activation="relu", in_units=64))
            self.output = nn.Dense(classes, in_units=24)

    def hybrid_forward(self, F, x):
        return self.output(self.features(x))


def fit(net, x, y, params, lr, epochs, batch=32):
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(x, y), batch, shuffle=True)
    ce = gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(params, "adam", {"learning_rate": lr})
    for epoch in range(epochs):
        total = 0.0
        for xb, yb in loader:
            with autograd.record():
                loss = ce(net(xb), yb)
            loss.backward()
            trainer.step(xb.shape[0])
            total += loss.sum().asscalar()
    return total / len(x)


def score(net, x, y):
    return float((net(mx.nd.array(x)).argmax(axis=1).asnumpy() == y).mean())


digits = load_digits()
X = (digits.data / 16.0).astype("float32")
y = digits.target.astype("float32")
perm = np.random.permutation(len(X))
X, y = X[perm], y[perm]

# source task: full set of labels, first 1100 images
source_x, source_y = X[:1100], y[:1100]
# target task: images of another scanner (lower contrast, noise), few labels
target_x = np.clip(0.2 + 0.7 * X[1100:] + 0.1 * np.random.randn(*X[1100:].shape), 0, 1)
target_x, target_y = target_x.astype("float32"), y[1100:]
few = np.concatenate([np.where(target_y == c)[0][:6] for c in range(10)])
rest = np.setdiff1d(np.arange(len(target_y)), few)

base = Classifier(10)
base.initialize(mx.init.Xavier())
base.hybridize()
print("source loss %.4f" % fit(base, source_x, source_y, base.collect_params(), 2e-3, 30))

path = os.path.join(tempfile.mkdtemp(), "features.params")
base.features.save_parameters(path)

net = Classifier(10)
net.initialize(mx.init.Xavier())
net.load_parameters(path, allow_missing=True, ignore_extra=True)
net.hybridize()

# only the new head is trained
net.features.collect_params().setattr("grad_req", "null")
final = fit(net, target_x[few], target_y[few], net.output.collect_params(), 1e-2, 60, batch=16)
print("target train loss %.4f" % final)
print("target accuracy %.4f" % score(net, target_x[rest], target_y[rest]))
