"""Predict the tags of an item (several at once) from its feature vector."""
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import nn
from sklearn.metrics import average_precision_score, f1_score
from sklearn.preprocessing import StandardScaler

N_FEATURES = 30
N_TAGS = 8


def make_items(n, rng):
    x = rng.normal(size=(n, N_FEATURES))
    w1 = np.random.RandomState(0).normal(size=(N_FEATURES, 16)) / np.sqrt(N_FEATURES)
    w2 = np.random.RandomState(1).normal(size=(16, N_TAGS))
    score = np.tanh(2 * x @ w1) @ w2
    cut = np.quantile(score, 0.85, axis=0)
    y = (score + rng.normal(0, 0.2, score.shape) > cut).astype("float32")
    return x.astype("float32"), y


def build_net():
    net = nn.HybridSequential()
    net.add(nn.Dense(64, activation="relu"),
            nn.Dense(64, activation="relu"),
            nn.Dense(N_TAGS, activation="sigmoid"))
    net.initialize(mx.init.Xavier(), force_reinit=True)
    net.hybridize()
    return net


def report(net, x, y):
    p = net(mx.nd.array(x)).asnumpy()
    return (average_precision_score(y, p, average="macro"),
            f1_score(y, p > 0.5, average="micro", zero_division=0))


def main():
    mx.random.seed(21)
    np.random.seed(21)
    rng = np.random.RandomState(21)
    x, y = make_items(8000, rng)
    x_train, y_train = x[:6400], y[:6400]
    x_test, y_test = x[6400:], y[6400:]
    scaler = StandardScaler().fit(x_train)
    x_train = scaler.transform(x_train).astype("float32")
    x_test = scaler.transform(x_test).astype("float32")

    loader = gluon.data.DataLoader(gluon.data.ArrayDataset(x_train, y_train),
                                   batch_size=64, shuffle=True)
    net = build_net()
    bce = gluon.loss.SigmoidBinaryCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 1e-3})

    print("tag frequency:", np.round(y_train.mean(0), 3))
    for epoch in range(15):
        losses = []
        for xb, yb in loader:
            with autograd.record():
                loss = bce(net(xb), yb)
            loss.backward()
            trainer.step(xb.shape[0])
            losses.append(loss.mean().asscalar())
        ap, f1 = report(net, x_test, y_test)
        print(f"epoch {epoch:2d}  bce {np.mean(losses):.4f}  mAP {ap:.3f}  micro-F1 {f1:.3f}")


if __name__ == "__main__":
    main()
