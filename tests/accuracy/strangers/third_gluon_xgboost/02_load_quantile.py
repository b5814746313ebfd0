# Upper-quantile forecast of hourly electricity load, to decide on reserve capacity.
import mxnet as mx
import numpy as onp
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn

npx.set_np()
mx.random.seed(11)
onp.random.seed(11)

TAU = 0.9


def simulate(n):
    rng = onp.random.RandomState(3)
    hour = rng.randint(0, 24, n)
    day = rng.randint(0, 7, n)
    temp = 12 + 9 * rng.randn(n)
    base = 40 + 14 * onp.sin((hour - 7) / 24 * 2 * onp.pi) - 6 * (day >= 5)
    load = base + 0.05 * (temp - 16) ** 2 + rng.gamma(2.0, 1.0 + 0.15 * hour, n)
    feats = onp.stack([onp.sin(hour / 24 * 2 * onp.pi), onp.cos(hour / 24 * 2 * onp.pi),
                       (day >= 5).astype(float), (temp - 12) / 9], axis=1)
    return feats.astype("float32"), load.astype("float32")


class QuantileLoss:
    def __init__(self, tau):
        self.tau = tau

    def __call__(self, pred, target):
        diff = target - pred
        return np.maximum(self.tau * diff, (self.tau - 1) * diff).mean()


def main():
    X, y = simulate(6000)
    n_train = 4500
    mu, sd = y[:n_train].mean(), y[:n_train].std()
    y_scaled = (y - mu) / sd

    train_set = gluon.data.ArrayDataset(np.array(X[:n_train]), np.array(y_scaled[:n_train]))
    loader = gluon.data.DataLoader(train_set, batch_size=64, shuffle=True)
    X_test, y_test = np.array(X[n_train:]), y[n_train:]

    net = nn.HybridSequential()
    net.add(nn.Dense(64, activation="relu"))
    net.add(nn.Dense(64, activation="relu"))
    net.add(nn.Dense(1))
    net.initialize(mx.init.Xavier())
    net.hybridize()

    criterion = QuantileLoss(TAU)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 2e-3})

    for epoch in range(20):
        running = 0.0
        for xb, yb in loader:
            with autograd.record():
                out = net(xb)
                loss = criterion(out, yb)
            loss.backward()
            trainer.step(1)
            running += float(loss)
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1:3d}  pinball {running / len(loader):.4f}")

    q = net(X_test).asnumpy().ravel() * sd + mu
    d = y_test - q
    pinball = onp.maximum(TAU * d, (TAU - 1) * d).mean()
    print(f"test pinball loss {pinball:.3f} MW")
    print(f"coverage {(y_test <= q).mean():.3f} (wanted {TAU})")
    print(f"mean reserve above load {onp.maximum(-d, 0).mean():.2f} MW")


if __name__ == "__main__":
    main()
