"""Small convnet on the 8x8 digits, with gradient accumulation to emulate a larger batch."""
import random

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 7
EPOCHS = 15
MICRO_BATCH = 16
ACCUMULATE = 4
LR = 0.05

random.seed(SEED)
np.random.seed(SEED)
mx.random.seed(SEED)
ctx = mx.cpu()


def get_data():
    digits = load_digits()
    x = (digits.images / 16.0).astype("float32")[:, None, :, :]
    y = digits.target.astype("float32")
    xtr, xte, ytr, yte = train_test_split(
        x, y, test_size=0.3, stratify=y, random_state=SEED)
    train = gluon.data.ArrayDataset(xtr, ytr)
    test = gluon.data.ArrayDataset(xte, yte)
    return (gluon.data.DataLoader(train, MICRO_BATCH, shuffle=True, last_batch="discard"),
            gluon.data.DataLoader(test, 128, shuffle=False))


def build():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, padding=1, activation="relu"),
            nn.Conv2D(32, 3, padding=1, activation="relu"),
            nn.MaxPool2D(2),
            nn.Flatten(),
            nn.Dense(64, activation="relu"),
            nn.Dropout(0.2),
            nn.Dense(10))
    return net


def evaluate(net, loader):
    metric = mx.metric.Accuracy()
    for data, label in loader:
        metric.update(label, net(data.as_in_context(ctx)))
    return metric.get()[1]


train_loader, test_loader = get_data()
net = build()
net.initialize(mx.init.Xavier(), ctx=ctx)
net.hybridize()
net(nd.zeros((1, 1, 8, 8), ctx=ctx))

# the gradients of several small batches are summed before each update
for p in net.collect_params().values():
    p.grad_req = "add"

loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd",
                        {"learning_rate": LR, "momentum": 0.9, "wd": 1e-4})

micro_steps = 0
for epoch in range(EPOCHS):
    total, seen = 0.0, 0
    for data, label in train_loader:
        data, label = data.as_in_context(ctx), label.as_in_context(ctx)
        with autograd.record():
            loss = loss_fn(net(data), label)
        loss.backward()
        total += loss.sum().asscalar()
        seen += data.shape[0]
        micro_steps += 1
        if micro_steps % ACCUMULATE == 0:
            trainer.step(MICRO_BATCH * ACCUMULATE)
    print("epoch %2d  loss %.4f  test acc %.4f"
          % (epoch + 1, total / seen, evaluate(net, test_loader)))

print("final accuracy: %.4f" % evaluate(net, test_loader))
