"""Matrix factorisation with biases for explicit movie ratings (simulated, MovieLens-like)."""
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, lr_scheduler
from mxnet.gluon import nn

N_USERS, N_ITEMS, N_RATINGS = 400, 300, 24000
DIM = 8
EPOCHS = 24
BATCH = 256

rng = np.random.RandomState(2024)
mx.random.seed(2024)
np.random.seed(2024)


def simulate_ratings():
    u = rng.randint(0, N_USERS, N_RATINGS)
    i = (N_ITEMS * rng.beta(1.0, 2.0, N_RATINGS)).astype(int)
    pu = rng.randn(N_USERS, 4) * 0.6
    qi = rng.randn(N_ITEMS, 4) * 0.6
    bu = rng.randn(N_USERS) * 0.4
    bi = rng.randn(N_ITEMS) * 0.5
    r = 3.4 + bu[u] + bi[i] + (pu[u] * qi[i]).sum(1) + 0.4 * rng.randn(N_RATINGS)
    return u, i, np.clip(np.round(r * 2) / 2, 0.5, 5.0)


class MF(gluon.HybridBlock):
    def __init__(self, mean, **kw):
        super(MF, self).__init__(**kw)
        self.mean = float(mean)
        with self.name_scope():
            self.user = nn.Embedding(N_USERS, DIM, weight_initializer=mx.init.Normal(0.1))
            self.item = nn.Embedding(N_ITEMS, DIM, weight_initializer=mx.init.Normal(0.1))
            self.user_bias = nn.Embedding(N_USERS, 1, weight_initializer="zeros")
            self.item_bias = nn.Embedding(N_ITEMS, 1, weight_initializer="zeros")

    def hybrid_forward(self, F, u, i):
        dot = F.sum(self.user(u) * self.item(i), axis=1)
        bias = self.user_bias(u).reshape((-1,)) + self.item_bias(i).reshape((-1,))
        return dot + bias + self.mean


users, items, ratings = simulate_ratings()
cut = int(0.85 * N_RATINGS)
order = rng.permutation(N_RATINGS)
tr, te = order[:cut], order[cut:]


def as_loader(idx, shuffle):
    ds = gluon.data.ArrayDataset(users[idx].astype("float32"), items[idx].astype("float32"),
                                 ratings[idx].astype("float32"))
    return gluon.data.DataLoader(ds, batch_size=BATCH, shuffle=shuffle)


train_loader, test_loader = as_loader(tr, True), as_loader(te, False)

net = MF(ratings[tr].mean())
net.initialize()
net.hybridize()

schedule = lr_scheduler.FactorScheduler(step=6, factor=0.5)
optimizer = mx.optimizer.Adam(learning_rate=0.01, wd=1e-4, lr_scheduler=schedule)
trainer = gluon.Trainer(net.collect_params(), optimizer)
l2 = gluon.loss.L2Loss()


def rmse(loader):
    se = n = 0.0
    for u, i, r in loader:
        e = (net(u, i) - r).asnumpy()
        se += float((e ** 2).sum())
        n += e.size
    return (se / n) ** 0.5


print("baseline RMSE (global mean): %.4f" % ratings[te].std())
for epoch in range(EPOCHS):
    for u, i, r in train_loader:
        with autograd.record():
            loss = l2(net(u, i), r)
        loss.backward()
        trainer.step(r.shape[0])
    if (epoch + 1) % 3 == 0:
        print("epoch %2d  train RMSE %.4f  test RMSE %.4f"
              % (epoch + 1, rmse(train_loader), rmse(test_loader)))
