import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

mx.random.seed(5)
np.random.seed(5)
batch_size = 32
num_epochs = 12


def evaluate(net, loader, metric):
    for data, label in loader:
        metric.update(label, net(data))
    return metric.get()[1]


X, y = load_digits(return_X_y=True)
X = (X / 16.0).astype(np.float32)
y = y.astype(np.float32)
X_tr, X_va, y_tr, y_va = train_test_split(X, y, test_size=0.3, random_state=1, stratify=y)
train_loader = gluon.data.DataLoader(gluon.data.ArrayDataset(X_tr, y_tr), batch_size, shuffle=True)
val_loader = gluon.data.DataLoader(gluon.data.ArrayDataset(X_va, y_va), 128)

net = nn.HybridSequential()
net.add(nn.Dense(64, activation='relu'),
        nn.Dense(32, activation='relu'),
        nn.Dense(10))
net.initialize(mx.init.Xavier())
net.hybridize()

softmax_ce = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': 0.04, 'momentum': 0.5})
val_metric = mx.metric.Accuracy(name='val-acc')
best = 0.0

for epoch in range(num_epochs):
    train_metric = mx.metric.Accuracy()
    train_loss = mx.metric.Loss()
    for data, label in train_loader:
        with autograd.record():
            output = net(data)
            loss = softmax_ce(output, label)
        loss.backward()
        trainer.step(data.shape[0])
        train_metric.update(label, output)
        train_loss.update(0, loss)
    val_acc = evaluate(net, val_loader, val_metric)
    if val_acc > best:
        best = val_acc
        net.save_parameters('best.params')
    print('Epoch %02d | loss %.4f | train acc %.4f | val acc %.4f | best %.4f' % (
        epoch, train_loss.get()[1], train_metric.get()[1], val_acc, best))

net.load_parameters('best.params')
print('validation accuracy of the best checkpoint: %.4f' % evaluate(net, val_loader, val_metric))
