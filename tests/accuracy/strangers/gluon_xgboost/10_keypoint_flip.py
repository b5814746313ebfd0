import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

SIZE = 16
BATCH = 50
EPOCHS = 10
rng = np.random.RandomState(9)
mx.random.seed(9)


def render(n):
    gy, gx = np.mgrid[0:SIZE, 0:SIZE] / (SIZE - 1.0)
    centers = rng.uniform(0.15, 0.85, (n, 2))
    cx, cy = centers[:, 0, None, None], centers[:, 1, None, None]
    d2 = (gx[None] - cx) ** 2 + (gy[None] - cy) ** 2
    img = np.exp(-d2 / (2 * 0.09 ** 2)) + rng.normal(0, 0.12, (n, SIZE, SIZE))
    return img[:, None].astype('float32'), centers.astype('float32')


def augment(imgs, pts):
    imgs, pts = imgs.copy(), pts.copy()
    flip = rng.rand(len(imgs)) < 0.5
    imgs[flip] = imgs[flip][:, :, :, ::-1]
    gain = rng.uniform(0.8, 1.2, (len(imgs), 1, 1, 1)).astype('float32')
    return imgs * gain, pts


def batches(X, Y):
    idx = rng.permutation(len(X))
    for s in range(0, len(X), BATCH):
        j = idx[s:s + BATCH]
        xb, yb = augment(X[j], Y[j])
        yield nd.array(xb), nd.array(yb)


def build_net():
    net = nn.HybridSequential()
    net.add(nn.Conv2D(12, 3, padding=1, activation='relu'),
            nn.MaxPool2D(2),
            nn.Conv2D(24, 3, padding=1, activation='relu'),
            nn.MaxPool2D(2),
            nn.Flatten(),
            nn.Dense(64, activation='relu'),
            nn.Dense(2))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


train_x, train_y = render(1500)
val_x, val_y = render(400)
net = build_net()
l2 = gluon.loss.L2Loss()
trainer = gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': 1e-3})

for epoch in range(EPOCHS):
    total, n = 0.0, 0
    for xb, yb in batches(train_x, train_y):
        with autograd.record():
            loss = l2(net(xb), yb)
        loss.backward()
        trainer.step(xb.shape[0])
        total += loss.sum().asscalar()
        n += xb.shape[0]
    err = np.abs(net(nd.array(val_x)).asnumpy() - val_y).mean(axis=0) * SIZE
    print('epoch %d  loss %.5f  val err px  x %.3f  y %.3f' % (epoch, total / n, err[0], err[1]))
