import time

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

mx.random.seed(42)
np.random.seed(42)


def synth_patches(n, size=12, seed=0):
    """oriented stripes in noise, 4 orientations"""
    r = np.random.RandomState(seed)
    yy, xx = np.mgrid[0:size, 0:size]
    labels = r.randint(0, 4, n)
    imgs = np.zeros((n, 1, size, size), dtype='float32')
    for i, k in enumerate(labels):
        ang = k * np.pi / 4 + r.normal(0, 0.12)
        phase = r.uniform(0, 2 * np.pi)
        wave = np.sin((xx * np.cos(ang) + yy * np.sin(ang)) * 1.2 + phase)
        imgs[i, 0] = wave + r.normal(0, 1.3, (size, size))
    return imgs, labels.astype('float32')


def conv_block(ch):
    blk = nn.HybridSequential()
    blk.add(nn.Conv2D(ch, 3, padding=1, use_bias=False), nn.BatchNorm(), nn.Activation('relu'), nn.MaxPool2D(2))
    return blk


def get_net():
    net = nn.HybridSequential()
    net.add(conv_block(12), conv_block(24), nn.Flatten(),
            nn.Dense(48, activation='relu'), nn.Dropout(0.6), nn.Dense(4))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


class Learner:
    def __init__(self, net, train_loader, val_loader, lr):
        self.net = net
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self.trainer = gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': lr, 'wd': 1e-3})

    def run_epoch(self):
        tot, cnt = 0.0, 0
        for x, y in self.train_loader:
            with autograd.record():
                l = self.loss(self.net(x), y)
            l.backward()
            self.trainer.step(x.shape[0])
            tot += l.sum().asscalar()
            cnt += x.shape[0]
        return tot / cnt

    def validate(self):
        metric = mx.metric.Accuracy()
        tot, cnt = 0.0, 0
        for x, y in self.val_loader:
            with autograd.record():
                out = self.net(x)
                l = self.loss(out, y)
            metric.update(y, out)
            tot += l.sum().asscalar()
            cnt += x.shape[0]
        return tot / cnt, metric.get()[1]


Xtr, ytr = synth_patches(2400, seed=1)
Xva, yva = synth_patches(800, seed=2)
tr = gluon.data.DataLoader(gluon.data.ArrayDataset(Xtr, ytr), batch_size=48, shuffle=True)
va = gluon.data.DataLoader(gluon.data.ArrayDataset(Xva, yva), batch_size=48)

learner = Learner(get_net(), tr, va, lr=1e-3)
for ep in range(5):
    t0 = time.time()
    tl = learner.run_epoch()
    vl, va_acc = learner.validate()
    print(f'[{ep}] train {tl:.4f} | val {vl:.4f} acc {va_acc:.4f} | {time.time() - t0:.1f}s')
