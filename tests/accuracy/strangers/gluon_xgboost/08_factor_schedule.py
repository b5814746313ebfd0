import argparse

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, lr_scheduler
from mxnet.gluon import nn

parser = argparse.ArgumentParser(description='spiral classification')
parser.add_argument('--num-epochs', type=int, default=15)
parser.add_argument('--batch-size', type=int, default=50)
parser.add_argument('--lr', type=float, default=0.1)
parser.add_argument('--lr-decay', type=float, default=0.5)
parser.add_argument('--lr-decay-epochs', type=int, default=3)
parser.add_argument('--momentum', type=float, default=0.9)
opt = parser.parse_args()

mx.random.seed(123)
np.random.seed(123)


def spirals(n_per_arm, arms=3, noise=0.28):
    feats, labs = [], []
    for k in range(arms):
        r = np.sqrt(np.random.uniform(0.02, 1, n_per_arm)) * 2
        a = 1.8 * r + 2 * np.pi * k / arms + np.random.normal(0, noise, n_per_arm)
        feats.append(np.c_[r * np.cos(a), r * np.sin(a)])
        labs.append(np.full(n_per_arm, k))
    feats, labs = np.concatenate(feats), np.concatenate(labs)
    order = np.random.permutation(len(labs))
    return feats[order].astype('float32'), labs[order].astype('float32')


X, y = spirals(800)
n_val = 500
val_x, val_y = X[:n_val], y[:n_val]
train_data = gluon.data.DataLoader(gluon.data.ArrayDataset(X[n_val:], y[n_val:]),
                                   batch_size=opt.batch_size, shuffle=True)

net = nn.HybridSequential(prefix='spiral_')
with net.name_scope():
    net.add(nn.Dense(40, activation='relu'))
    net.add(nn.Dense(40, activation='relu'))
    net.add(nn.Dense(3))
net.initialize(mx.init.Xavier(magnitude=2.24))
net.hybridize()

sched = lr_scheduler.FactorScheduler(step=opt.lr_decay_epochs, factor=opt.lr_decay, base_lr=opt.lr)
trainer = gluon.Trainer(net.collect_params(), 'sgd',
                        {'learning_rate': opt.lr, 'momentum': opt.momentum, 'lr_scheduler': sched})
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()


def test():
    out = net(mx.nd.array(val_x))
    nll = loss_fn(out, mx.nd.array(val_y)).mean().asscalar()
    acc = (out.argmax(axis=1).asnumpy() == val_y).mean()
    return nll, acc


for epoch in range(opt.num_epochs):
    cumulative = 0.0
    for data, label in train_data:
        with autograd.record():
            loss = loss_fn(net(data), label)
        loss.backward()
        trainer.step(data.shape[0])
        cumulative += loss.mean().asscalar()
    nll, acc = test()
    print('[Epoch %d] train-loss=%.4f val-loss=%.4f val-acc=%.4f' % (epoch, cumulative / len(train_data), nll, acc))
