import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn, rnn

mx.random.seed(1)
np.random.seed(1)

T = 24
N_TRAIN, N_VAL = 2000, 480


def make_sequences(n):
    """three machine states: drift up, drift down, oscillation; two noisy sensors"""
    cls = np.random.randint(0, 3, n)
    t = np.arange(T)
    seqs = np.empty((n, T, 2), dtype=np.float32)
    for i in range(n):
        if cls[i] == 0:
            base = np.linspace(-0.8, 0.8, T)
        elif cls[i] == 1:
            base = np.linspace(0.8, -0.8, T)
        else:
            base = np.sin(2 * np.pi * t / 8 + np.random.uniform(0, 6.28))
        shift = np.random.normal(0, 1.0)
        seqs[i, :, 0] = base + shift + np.random.normal(0, 0.5, T)
        seqs[i, :, 1] = 0.5 * base - shift + np.random.normal(0, 0.5, T)
    return seqs, cls.astype(np.float32)


class StateNet(gluon.Block):
    def __init__(self, hidden, n_out):
        super(StateNet, self).__init__()
        with self.name_scope():
            self.lstm = rnn.LSTM(hidden)
            self.head = nn.Dense(n_out)

    def forward(self, x):
        out = self.lstm(x)
        return self.head(out[:, -1, :])


X, y = make_sequences(N_TRAIN + N_VAL)
train_ds = gluon.data.ArrayDataset(X[:N_TRAIN], y[:N_TRAIN])
val_ds = gluon.data.ArrayDataset(X[N_TRAIN:], y[N_TRAIN:])
train_dl = gluon.data.DataLoader(train_ds, batch_size=40, shuffle=True)
val_dl = gluon.data.DataLoader(val_ds, batch_size=40)

net = StateNet(24, 3)
net.initialize(mx.init.Xavier())
ce = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': 0.002})

for epoch in range(6):
    losses = []
    for xb, yb in train_dl:
        with autograd.record():
            loss = ce(net(xb), yb)
        loss.backward()
        trainer.step(xb.shape[0])
        losses.append(loss.mean().asscalar())
    acc = mx.metric.Accuracy()
    for xb, yb in val_dl:
        acc.update([yb], [net(xb)])
    print('epoch {} train_loss {:.4f} val_acc {:.4f}'.format(epoch, np.mean(losses), acc.get()[1]))
