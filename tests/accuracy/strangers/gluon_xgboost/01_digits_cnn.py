import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

mx.random.seed(7)
np.random.seed(7)

BATCH = 64
EPOCHS = 9
LR = 1e-3


class DigitNet(gluon.HybridBlock):
    def __init__(self, classes=10, **kwargs):
        super(DigitNet, self).__init__(**kwargs)
        with self.name_scope():
            self.conv1 = nn.Conv2D(16, kernel_size=3, padding=1, activation='relu')
            self.pool1 = nn.MaxPool2D(2)
            self.conv2 = nn.Conv2D(32, kernel_size=3, padding=1, activation='relu')
            self.pool2 = nn.MaxPool2D(2)
            self.fc1 = nn.Dense(64, activation='relu')
            self.fc2 = nn.Dense(classes)

    def hybrid_forward(self, F, x):
        x = self.pool1(self.conv1(x))
        x = self.pool2(self.conv2(x))
        x = self.fc1(x)
        return F.softmax(self.fc2(x))


def get_data():
    digits = load_digits()
    X = digits.images.astype('float32')[:, None] / 16.0
    y = digits.target.astype('float32')
    Xtr, Xte, ytr, yte = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    train = gluon.data.DataLoader(gluon.data.ArrayDataset(Xtr, ytr), BATCH, shuffle=True)
    test = gluon.data.DataLoader(gluon.data.ArrayDataset(Xte, yte), BATCH)
    return train, test


def evaluate(net, loader, loss_fn):
    acc = mx.metric.Accuracy()
    total, n = 0.0, 0
    for x, y in loader:
        out = net(x)
        total += loss_fn(out, y).sum().asscalar()
        n += len(y)
        acc.update(y, out)
    return acc.get()[1], total / n


train_data, test_data = get_data()
net = DigitNet()
net.initialize(mx.init.Xavier())
net.hybridize()

criterion = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': LR})

for epoch in range(EPOCHS):
    running = 0.0
    seen = 0
    for x, y in train_data:
        with autograd.record():
            out = net(x)
            loss = criterion(out, y)
        loss.backward()
        trainer.step(x.shape[0])
        running += nd.sum(loss).asscalar()
        seen += x.shape[0]
    acc, val_loss = evaluate(net, test_data, criterion)
    print('epoch %2d  train loss %.4f  val loss %.4f  val acc %.4f' % (epoch, running / seen, val_loss, acc))
