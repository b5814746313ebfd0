import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from sklearn.datasets import load_digits

mx.random.seed(2)
np.random.seed(2)


class SmallNet(gluon.HybridBlock):
    def __init__(self, n_out, **kw):
        super().__init__(**kw)
        with self.name_scope():
            self.features = nn.HybridSequential()
            self.features.add(nn.Conv2D(24, 3, padding=1, activation='relu'),
                              nn.MaxPool2D(2),
                              nn.Conv2D(48, 3, padding=1, activation='relu'),
                              nn.Flatten(),
                              nn.Dense(64, activation='relu'))
            self.output = nn.Dense(n_out)

    def hybrid_forward(self, F, x):
        return self.output(self.features(x))


def fit(net, x, y, lr, epochs, bs, xv, yv, tag):
    dl = gluon.data.DataLoader(gluon.data.ArrayDataset(x, y), bs, shuffle=True)
    ce = gluon.loss.SoftmaxCrossEntropyLoss()
    tr = gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': lr, 'momentum': 0.9})
    for ep in range(epochs):
        s = 0.0
        for a, b in dl:
            with autograd.record():
                l = ce(net(a), b)
            l.backward()
            tr.step(a.shape[0])
            s += l.mean().asscalar()
        if (ep + 1) % max(1, epochs // 5) == 0:
            acc = (net(nd.array(xv)).argmax(1).asnumpy() == yv).mean()
            print(f'{tag} epoch {ep + 1} loss {s / len(dl):.4f} val acc {acc:.4f}')


digits = load_digits()
imgs = (digits.images / 16.0).astype('float32')[:, None]
lab = digits.target
perm = np.random.permutation(len(lab))
imgs, lab = imgs[perm], lab[perm]

# source task: ten digits, clean scans
xs, ys = imgs[:1000], lab[:1000].astype('float32')
base = SmallNet(10)
base.initialize(mx.init.Xavier())
base.hybridize()
fit(base, xs[:800], ys[:800], 0.03, 10, 32, xs[800:], ys[800:], 'pretrain')
base.features.save_parameters('features.params')

# target task: odd or even on the other scanner, few labelled images
xt = imgs[1000:] * 0.8 + np.random.normal(0, 0.1, imgs[1000:].shape).astype('float32')
yt = (lab[1000:] % 2).astype('float32')
net = SmallNet(2)
net.features.load_parameters('features.params')
net.initialize(mx.init.Xavier(), force_reinit=True)
net.features.collect_params().setattr('lr_mult', 0.2)
net.hybridize()
fit(net, xt[:80], yt[:80], 0.01, 20, 10, xt[80:], yt[80:], 'finetune')
