import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
np.random.seed(0)

digits = load_digits()
rng = np.random.default_rng(0)
imgs = digits.images.astype(np.float32) / 16.0
# every scan comes with its own contrast, background and grain
imgs = imgs * rng.uniform(0.4, 1.2, (len(imgs), 1, 1)) + rng.uniform(-1.0, 1.0, (len(imgs), 1, 1))
imgs += rng.normal(0, 0.15, imgs.shape)
imgs = torch.tensor(imgs, dtype=torch.float32).unsqueeze(1)
labels = digits.target
n_train = 1300
train_x, test_x = imgs[:n_train], imgs[n_train:]
train_y, test_y = labels[:n_train], labels[n_train:]


def augment(x):
    b = x.size(0)
    x *= torch.empty(b, 1, 1, 1).uniform_(0.6, 1.4)
    x += torch.empty(b, 1, 1, 1).uniform_(-1.0, 1.0)
    x += 0.2 * torch.randn_like(x)
    return x


class Encoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 16, dim),
        )
        self.projector = nn.Sequential(nn.ReLU(), nn.Linear(dim, 32))

    def forward(self, x):
        return self.projector(self.features(x))


def nt_xent(z1, z2, temperature=0.3):
    n = z1.size(0)
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    sim = z @ z.t() / temperature
    sim.fill_diagonal_(float("-inf"))
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, target)


def linear_probe(model):
    model.eval()
    with torch.no_grad():
        f_tr = model.features(train_x).numpy()
        f_te = model.features(test_x).numpy()
    mu, sd = f_tr.mean(0), f_tr.std(0) + 1e-6
    clf = LogisticRegression(max_iter=500)
    clf.fit((f_tr[:200] - mu) / sd, train_y[:200])
    model.train()
    return clf.score((f_te - mu) / sd, test_y)


model = Encoder()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(train_x), batch_size=128, shuffle=True, drop_last=True)

print("probe before training: %.3f" % linear_probe(model))
for epoch in range(1, 21):
    total = 0.0
    for (xb,) in loader:
        v1 = augment(xb)
        v2 = augment(xb)
        loss = nt_xent(model(v1), model(v2))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    if epoch % 5 == 0:
        print("epoch %2d  nt-xent %.4f  probe acc %.3f" % (epoch, total / len(loader), linear_probe(model)))
