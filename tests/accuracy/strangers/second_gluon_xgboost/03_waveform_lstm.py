"""Classify noisy waveforms (sine / square / sawtooth / chirp) with an LSTM."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, rnn


SEQ_LEN = 40
CLASSES = ["sine", "square", "saw", "chirp"]


def make_waves(n, rng):
    t = np.linspace(0, 1, SEQ_LEN)
    X = np.zeros((n, SEQ_LEN, 1), dtype="float32")
    y = rng.integers(0, len(CLASSES), n)
    for i, c in enumerate(y):
        f = rng.uniform(2, 4)
        ph = rng.uniform(0, 1)
        cycle = f * t + ph
        if c == 0:
            s = np.sin(2 * np.pi * cycle)
        elif c == 1:
            s = np.sign(np.sin(2 * np.pi * cycle))
        elif c == 2:
            s = 2 * (cycle % 1) - 1
        else:
            s = np.sin(2 * np.pi * (cycle + 4 * t ** 2))
        X[i, :, 0] = s + rng.normal(0, 0.25, SEQ_LEN)
    return X, y.astype("float32")


class WaveNet(gluon.Block):
    def __init__(self, hidden, n_classes, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.lstm = rnn.LSTM(hidden, layout="NTC")
            self.head = nn.Dense(n_classes)

    def forward(self, x):
        return self.head(self.lstm(x).mean(axis=1))


def accuracy(net, loader):
    m = mx.metric.Accuracy()
    for x, y in loader:
        m.update([y], [net(x)])
    return m.get()[1]


def main():
    mx.random.seed(11)
    np.random.seed(11)
    rng = np.random.default_rng(11)
    train_set = gluon.data.ArrayDataset(*make_waves(2400, rng))
    val_set = gluon.data.ArrayDataset(*make_waves(600, rng))
    train_loader = gluon.data.DataLoader(train_set, batch_size=60, shuffle=True)
    val_loader = gluon.data.DataLoader(val_set, batch_size=200)

    epochs = 16
    decay_epochs = 4
    net = WaveNet(48, len(CLASSES))
    net.initialize(mx.init.Xavier())
    scheduler = mx.lr_scheduler.FactorScheduler(step=decay_epochs, factor=0.5, base_lr=0.002)
    trainer = gluon.Trainer(net.collect_params(), "adam",
                            {"learning_rate": 0.002, "lr_scheduler": scheduler})
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()

    for epoch in range(1, epochs + 1):
        cum = 0.0
        for x, y in train_loader:
            with autograd.record():
                loss = criterion(net(x), y)
            loss.backward()
            gluon.utils.clip_global_norm([p.grad() for p in net.collect_params().values()], x.shape[0])
            trainer.step(x.shape[0])
            cum += loss.mean().asscalar()
        print("epoch %02d | loss %.4f | val acc %.3f" % (epoch,
                                                         cum / len(train_loader), accuracy(net, val_loader)))
    print("done, validation accuracy %.3f" % accuracy(net, val_loader))


if __name__ == "__main__":
    main()
