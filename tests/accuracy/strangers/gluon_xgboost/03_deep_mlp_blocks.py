import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler

SEED = 11
mx.random.seed(SEED)
np.random.seed(SEED)
ctx = mx.cpu()


class DeepMLP(nn.Block):
    """input projection -> n hidden layers -> classifier"""

    def __init__(self, width, n_hidden, n_class):
        super().__init__()
        with self.name_scope():
            self.inp = nn.Dense(width, activation='relu', in_units=20)
            self.hidden = []
            for i in range(n_hidden):
                layer = nn.Dense(width, activation='relu', in_units=width)
                layer.initialize(mx.init.Xavier(), ctx=ctx)
                self.hidden.append(layer)
            self.out = nn.Dense(n_class, in_units=width)
            self.inp.initialize(mx.init.Xavier(), ctx=ctx)
            self.out.initialize(mx.init.Xavier(), ctx=ctx)

    def forward(self, x):
        x = self.inp(x)
        for layer in self.hidden:
            x = layer(x)
        return self.out(x)


X, y = make_classification(n_samples=4500, n_features=20, n_informative=12, n_redundant=4,
                           n_classes=5, n_clusters_per_class=3, class_sep=1.3, random_state=SEED)
X_train, X_valid, y_train, y_valid = X[:3600], X[3600:], y[:3600], y[3600:]
sc = StandardScaler().fit(X_train)
X_train = sc.transform(X_train).astype('float32')
X_valid = sc.transform(X_valid).astype('float32')

train_iter = gluon.data.DataLoader(
    gluon.data.ArrayDataset(X_train, y_train.astype('float32')), batch_size=64, shuffle=True)

net = DeepMLP(width=32, n_hidden=4, n_class=5)
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), 'adam', {'learning_rate': 0.001})


def accuracy(data, labels):
    pred = net(nd.array(data, ctx=ctx)).argmax(axis=1).asnumpy()
    return (pred == labels).mean()


for epoch in range(8):
    cum = 0.0
    for xb, yb in train_iter:
        with autograd.record():
            l = loss_fn(net(xb), yb)
        l.backward()
        trainer.step(xb.shape[0])
        cum += l.mean().asscalar()
    print("Epoch %d: loss %.4f, train acc %.3f, valid acc %.3f" % (
        epoch, cum / len(train_iter), accuracy(X_train, y_train), accuracy(X_valid, y_valid)))
