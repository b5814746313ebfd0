"""A small convolutional network on images of shapes, hybridized, with a learning rate schedule and saved parameters."""

import argparse
import logging
import random

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn

log = logging.getLogger("train")
logging.basicConfig(level=logging.INFO, format="%(levelname)s:%(message)s")


def shapes(n, seed):
    rng = np.random.RandomState(seed)
    images, labels = np.zeros((n, 1, 10, 10), dtype="float32"), rng.randint(3, size=n)
    for image, label in zip(images, labels):
        y, x = rng.randint(1, 6, size=2)
        if label == 0:
            image[0, y : y + 4, x : x + 4] = 1
        elif label == 1:
            image[0, y, x : x + 4] = 1
        else:
            image[0, y : y + 4, x] = 1
    return images + 0.1 * rng.rand(n, 1, 10, 10).astype("float32"), labels.astype("float32")


class Net(gluon.HybridBlock):
    def __init__(self, classes, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential()
            self.features.add(nn.Conv2D(6, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Flatten())
            self.output = nn.Dense(classes)

    def hybrid_forward(self, F, x):
        return self.output(self.features(x))


def evaluate(net, loader):
    metric = mx.metric.Accuracy()
    for data, label in loader:
        metric.update([label], [net(data)])
    return metric.get()[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=24)
    args = parser.parse_args()
    mx.random.seed(7)
    np.random.seed(7)
    random.seed(7)
    train = gluon.data.DataLoader(gluon.data.ArrayDataset(*shapes(120, 0)), args.batch_size, shuffle=True)
    valid = gluon.data.DataLoader(gluon.data.ArrayDataset(*shapes(48, 1)), args.batch_size)
    net = Net(3, prefix="net_")
    net.initialize(mx.init.Xavier())
    net.hybridize()
    schedule = mx.lr_scheduler.FactorScheduler(step=10, factor=0.5, base_lr=0.02)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"lr_scheduler": schedule})
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    best = 0.0
    for epoch in range(args.epochs):
        total = 0.0
        for data, label in train:
            with autograd.record():
                loss = criterion(net(data), label)
            loss.backward()
            trainer.step(data.shape[0])
            total += loss.mean().asscalar()
        accuracy = evaluate(net, valid)
        log.info("Epoch[%d] learning rate %g", epoch, trainer.learning_rate)
        print(f"epoch {epoch} train loss {total / len(train):.5f} validation accuracy {accuracy:.4f}")
        if accuracy >= best:
            best = accuracy
            net.save_parameters("best.params")
            trainer.save_states("best.states")
    print("best", best, mx.nd.random.uniform(shape=(2,)).asnumpy().tolist(), np.random.rand())


if __name__ == "__main__":
    main()
