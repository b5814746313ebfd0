import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits


class EmbeddingNet(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, dim))

    def forward(self, x):
        return self.net(x)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, a, b, same):
        dist = torch.sqrt(((a - b) ** 2).sum(dim=1))
        pos = same * dist.pow(2)
        neg = (1 - same) * F.relu(self.margin - dist).pow(2)
        return (pos + neg).mean()


class PairSampler:
    def __init__(self, labels, generator):
        self.by_class = [torch.nonzero(labels == c).flatten() for c in range(10)]
        self.labels = labels
        self.g = generator

    def sample(self, n):
        left = torch.randint(0, len(self.labels), (n,), generator=self.g)
        right = torch.randint(0, len(self.labels), (n,), generator=self.g)
        for k in range(0, n, 2):
            pool = self.by_class[self.labels[left[k]].item()]
            right[k] = pool[torch.randint(0, len(pool), (1,), generator=self.g)]
        return left, right, (self.labels[left] == self.labels[right]).float()


@torch.no_grad()
def knn_accuracy(model, x_ref, y_ref, x_q, y_q):
    model.eval()
    d = torch.cdist(model(x_q), model(x_ref))
    model.train()
    return (y_ref[d.argmin(1)] == y_q).float().mean().item()


digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32)
x = (x - x.mean()) / x.std()
y = torch.tensor(digits.target)
g = torch.Generator().manual_seed(8)
perm = torch.randperm(len(x), generator=g)
x, y = x[perm], y[perm]
x_train, y_train, x_test, y_test = x[:1200], y[:1200], x[1200:], y[1200:]

torch.manual_seed(8)
model = EmbeddingNet()
criterion = ContrastiveLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
sampler = PairSampler(y_train, g)

running = 0.0
for step in range(1, 501):
    i, j, same = sampler.sample(64)
    loss = criterion(model(x_train[i]), model(x_train[j]), same)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running += loss.item()
    if step % 100 == 0:
        acc = knn_accuracy(model, x_train[:300], y_train[:300], x_test, y_test)
        print(f"step {step} loss {running / 100:.4f} 1-nn accuracy {acc:.4f}")
        running = 0.0
