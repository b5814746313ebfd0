"""5-fold cross validation of a Gluon regressor on the diabetes data."""

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, init, nd
from mxnet.gluon import nn
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

mx.random.seed(1)
np.random.seed(1)

FOLDS = 5
EPOCHS = 12
BATCH = 64


def build_net():
    net = nn.Sequential()
    net.add(
        nn.Dense(512, activation="relu"),
        nn.Dense(256, activation="relu"),
        nn.Dense(1),
    )
    net.initialize(init.Xavier())
    return net


def rmse(net, x, y):
    return float(((net(x).reshape((-1,)) - y) ** 2).mean().sqrt().asscalar())


def train_fold(net, x_tr, y_tr, x_va, y_va, fold):
    loss_fn = gluon.loss.L2Loss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 2e-3})
    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(x_tr, y_tr), batch_size=BATCH, shuffle=True)
    for epoch in range(EPOCHS):
        total = 0.0
        for xb, yb in loader:
            with autograd.record():
                loss = loss_fn(net(xb), yb)
            loss.backward()
            trainer.step(xb.shape[0])
            total += loss.sum().asscalar()
        print(f"fold {fold} epoch {epoch + 1:2d} loss {total / len(x_tr):.4f} valid rmse {rmse(net, x_va, y_va):.4f}")
    return rmse(net, x_tr, y_tr), rmse(net, x_va, y_va)


def main():
    x, y = load_diabetes(return_X_y=True)
    net = build_net()
    scores = []
    folds = KFold(FOLDS, shuffle=True, random_state=0)
    for fold, (tr, va) in enumerate(folds.split(x), 1):
        mean, std = x[tr].mean(0), x[tr].std(0)
        ym, ys = y[tr].mean(), y[tr].std()
        prep = lambda i: (
            nd.array((x[i] - mean) / std),
            nd.array((y[i] - ym) / ys),
        )
        scores.append(train_fold(net, *prep(tr), *prep(va), fold))
        print(f"fold {fold}: train rmse {scores[-1][0]:.4f}, valid rmse {scores[-1][1]:.4f}")
    train_mean, valid_mean = np.mean(scores, axis=0)
    print(f"{FOLDS}-fold: train rmse {train_mean:.4f}, valid rmse {valid_mean:.4f}")


if __name__ == "__main__":
    main()
