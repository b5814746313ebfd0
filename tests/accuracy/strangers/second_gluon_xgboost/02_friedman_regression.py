import time

import mxnet as mx
import numpy as onp
from mxnet import autograd, gluon, np, npx
from mxnet.gluon import nn
from sklearn.datasets import make_friedman1
from sklearn.metrics import r2_score

npx.set_np()
mx.random.seed(3)
onp.random.seed(3)


def get_data(n=3000):
    X, y = make_friedman1(n_samples=n, n_features=10, noise=0.5, random_state=3)
    X = X.astype("float32")
    y = y.astype("float32")
    n_train = int(n * 0.8)
    mu, sd = X[:n_train].mean(0), X[:n_train].std(0)
    X = (X - mu) / sd
    ymu, ysd = y[:n_train].mean(), y[:n_train].std()
    y = (y - ymu) / ysd
    return (X[:n_train], y[:n_train]), (X[n_train:], y[n_train:]), ysd


class Regressor(nn.HybridBlock):
    def __init__(self, hidden=64, **kwargs):
        super().__init__(**kwargs)
        self.fc1 = nn.Dense(hidden, activation="relu")
        self.fc2 = nn.Dense(hidden, activation="relu")
        self.out = nn.Dense(1)

    def hybrid_forward(self, F, x):
        return self.out(self.fc2(self.fc1(x)))


def mse(pred, target):
    return ((pred - target) ** 2).mean()


def predict(net, X):
    return net(np.array(X)).asnumpy().ravel()


(X_train, y_train), (X_test, y_test), y_scale = get_data()

batch_size = 50
dataset = gluon.data.ArrayDataset(X_train, y_train)
loader = gluon.data.DataLoader(dataset, batch_size=batch_size, shuffle=True)

net = Regressor()
net.initialize(mx.init.Xavier())
trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 2e-3})

start = time.time()
for epoch in range(40):
    running = 0.0
    for xb, yb in loader:
        with autograd.record():
            pred = net(xb)
            loss = mse(pred, yb)
        loss.backward()
        trainer.step(1)
        running += float(loss)
    if (epoch + 1) % 4 == 0:
        r2 = r2_score(y_test, predict(net, X_test))
        print(f"[{time.time() - start:5.1f}s] epoch {epoch + 1:3d}  mse {running / len(loader):.4f}  val R2 {r2:.3f}")

pred = predict(net, X_test)
rmse = onp.sqrt(onp.mean((pred - y_test) ** 2)) * y_scale
print(f"test R2   {r2_score(y_test, pred):.3f}")
print(f"test RMSE {rmse:.3f} (original units)")
