import argparse
import logging

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

logging.basicConfig(level=logging.INFO, format='%(message)s')
log = logging.getLogger('house')


def parse():
    p = argparse.ArgumentParser()
    p.add_argument('--epochs', type=int, default=10)
    p.add_argument('--batch-size', type=int, default=64)
    p.add_argument('--lr', type=float, default=0.02)
    p.add_argument('--hidden', type=int, default=64)
    p.add_argument('--seed', type=int, default=3)
    return p.parse_args()


def make_houses(n, rng):
    area = rng.gamma(6.0, 20.0, n)
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.8, n)), 1, 9)
    age = rng.uniform(0, 90, n)
    dist = rng.exponential(6.0, n)
    garden = rng.binomial(1, 0.4, n)
    price = 60 + 2.1 * area + 9 * rooms - 0.02 * (age - 30) ** 2 + 120 * np.exp(-dist / 4)
    price += 25 * garden * (dist > 5) + rng.normal(0, 12, n)
    X = np.stack([area, rooms, age, dist, garden], axis=1)
    return X.astype('float32'), price.astype('float32')


def build(hidden):
    net = nn.HybridSequential()
    with net.name_scope():
        net.add(nn.Dense(hidden, activation='relu'))
        net.add(nn.Dense(hidden, activation='relu'))
        net.add(nn.Dense(1))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    return net


def rmse(net, X, y, scale):
    pred = net(mx.nd.array(X)).asnumpy().ravel()
    return float(np.sqrt(np.mean((pred - y) ** 2)) * scale)


def main():
    args = parse()
    mx.random.seed(args.seed)
    np.random.seed(args.seed)
    rng = np.random.RandomState(args.seed)
    X, y = make_houses(3200, rng)
    X_train, y_train = X[:2560], y[:2560]
    X_val, y_val = X[2560:], y[2560:]

    mu, sd = X_train.mean(0), X_train.std(0)
    ymu, ysd = y_train.mean(), y_train.std()
    X_train, X_val = (X_train - mu) / sd, (X_val - mu) / sd
    y_train, y_val = (y_train - ymu) / ysd, (y_val - ymu) / ysd

    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(X_train, y_train),
                                   batch_size=args.batch_size, shuffle=True, last_batch='discard')
    net = build(args.hidden)
    l2 = gluon.loss.L2Loss()
    trainer = gluon.Trainer(net.collect_params(), 'sgd', {'learning_rate': args.lr, 'momentum': 0.9})

    for epoch in range(args.epochs):
        tot = 0.0
        for data, label in loader:
            with autograd.record():
                output = net(data)
                loss = l2(output, label).mean()
            loss.backward()
            trainer.step(args.batch_size)
            tot += loss.asscalar()
        log.info('epoch %d loss %.5f val rmse %.2f', epoch + 1, tot / len(loader),
                 rmse(net, X_val, y_val, ysd))


if __name__ == '__main__':
    main()
