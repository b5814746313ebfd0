# Recognise drawn shapes (disc, square, cross, ring) in 20x20 grey images.
# Small micro-batches, gradients summed over ACCUM of them before an update.
import numpy as np
import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

SIZE = 20
ACCUM = 4
MICRO = 16
EPOCHS = 14

mx.random.seed(5)
np.random.seed(5)


def draw(kind):
    yy, xx = np.mgrid[0:SIZE, 0:SIZE]
    cx, cy = np.random.uniform(7, 13, 2)
    r = np.random.uniform(4, 6.5)
    d = np.hypot(xx - cx, yy - cy)
    if kind == 0:
        img = d < r
    elif kind == 1:
        img = (abs(xx - cx) < r) & (abs(yy - cy) < r)
    elif kind == 2:
        img = ((abs(xx - cx) < 1.5) & (abs(yy - cy) < r)) | ((abs(yy - cy) < 1.5) & (abs(xx - cx) < r))
    else:
        img = (d < r) & (d > r - 2)
    return img + np.random.normal(0, 0.3, (SIZE, SIZE))


def dataset(n):
    y = np.random.randint(0, 4, n)
    x = np.stack([draw(k) for k in y]).astype("float32")[:, None]
    x = (x - 0.25) / 0.5
    return gluon.data.ArrayDataset(x, y.astype("float32"))


train = gluon.data.DataLoader(dataset(2560), batch_size=MICRO, shuffle=True, last_batch="discard")
valid = gluon.data.DataLoader(dataset(640), batch_size=128)

net = nn.HybridSequential()
with net.name_scope():
    net.add(nn.Conv2D(8, 5, padding=2, activation="relu"))
    net.add(nn.MaxPool2D(2, 2))
    net.add(nn.Conv2D(16, 3, padding=1, activation="relu"))
    net.add(nn.MaxPool2D(2, 2))
    net.add(nn.Dense(32, activation="relu"))
    net.add(nn.Dense(4))
net.initialize(mx.init.Xavier())

params = net.collect_params()
params.setattr("grad_req", "add")
trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.05, "momentum": 0.5})
ce = gluon.loss.SoftmaxCrossEntropyLoss()

updates = 0
for epoch in range(EPOCHS):
    epoch_loss = []
    for i, (x, y) in enumerate(train):
        with autograd.record():
            loss = ce(net(x), y)
        loss.backward()
        epoch_loss.append(loss.mean().asscalar())
        if (i + 1) % ACCUM == 0:
            trainer.step(MICRO * ACCUM)
            updates += 1
    hits = 0
    total = 0
    for x, y in valid:
        guess = net(x).argmax(axis=1)
        hits += (guess == y).sum().asscalar()
        total += y.shape[0]
    print("epoch {:2d}  updates {:4d}  loss {:.4f}  val acc {:.3f}".format(
        epoch + 1, updates, np.mean(epoch_loss), hits / total))
