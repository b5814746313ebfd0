"""Handwritten digit classification with a small Gluon CNN."""
import numpy as np
import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

mx.random.seed(7)
np.random.seed(7)

BATCH = 64
EPOCHS = 30
LR = 0.1


def load(batch_size):
    digits = load_digits()
    x = (digits.images / 16.0).astype("float32")[:, None, :, :]
    y = digits.target.astype("float32")
    x_tr, x_te, y_tr, y_te = train_test_split(x, y, test_size=0.2, random_state=0, stratify=y)
    mean, std = x_tr.mean(), x_tr.std()
    x_tr, x_te = (x_tr - mean) / std, (x_te - mean) / std
    train = gluon.data.DataLoader(gluon.data.ArrayDataset(x_tr, y_tr), batch_size, shuffle=True)
    test = gluon.data.DataLoader(gluon.data.ArrayDataset(x_te, y_te), batch_size)
    return train, test


def build():
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(16, kernel_size=3, padding=1, activation="relu"),
        nn.MaxPool2D(2),
        nn.Conv2D(32, kernel_size=3, padding=1, activation="relu"),
        nn.MaxPool2D(2),
        nn.Flatten(),
        nn.Dense(64, activation="relu"),
        nn.Dense(10),
    )
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


def evaluate(net, loader):
    metric = mx.metric.Accuracy()
    for data, label in loader:
        metric.update(label, net(data))
    return metric.get()[1]


train_data, test_data = load(BATCH)
net = build()
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": LR})

for epoch in range(EPOCHS):
    total, count = 0.0, 0
    for data, label in train_data:
        with autograd.record():
            loss = loss_fn(net(data), label).mean()
        loss.backward()
        trainer.step(data.shape[0])
        total += loss.mean().asscalar() * data.shape[0]
        count += data.shape[0]
    acc = evaluate(net, test_data)
    print("epoch %2d  train loss %.4f  test acc %.4f" % (epoch + 1, total / count, acc))

print("final test accuracy: %.4f" % evaluate(net, test_data))
