"""Metric learning on digits: pull same-class embeddings together, push others."""

import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

torch.manual_seed(31)

MARGIN = 1.0


class Embedder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(64, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, dim),
        )

    def forward(self, x):
        return self.net(x)


def pairwise_distance(z):
    """(n, n) matrix of euclidean distances"""
    diff = z.unsqueeze(1) - z.unsqueeze(0)
    return torch.sqrt((diff**2).sum(-1))


def contrastive_loss(z, y):
    d = pairwise_distance(z)
    same = (y[:, None] == y[None, :]).float()
    pull = same * d**2
    push = (1 - same) * torch.clamp(MARGIN - d, min=0) ** 2
    n = len(y)
    return (pull + push).sum() / (n * (n - 1))


def knn_accuracy(model, xa, ya, xb, yb):
    model.eval()
    with torch.no_grad():
        za = torch.nan_to_num(model(xa)).numpy()
        zb = torch.nan_to_num(model(xb)).numpy()
    return KNeighborsClassifier(5).fit(za, ya.numpy()).score(zb, yb.numpy())


def main():
    d = load_digits()
    xa, xb, ya, yb = train_test_split(d.data / 16.0, d.target, test_size=0.25, random_state=0, stratify=d.target)
    xa, xb = (torch.tensor(a, dtype=torch.float32) for a in (xa, xb))
    ya, yb = (torch.tensor(a) for a in (ya, yb))

    model = Embedder()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 9):
        model.train()
        total, steps = 0.0, 0
        for idx in torch.randperm(len(xa)).split(64):
            opt.zero_grad()
            loss = contrastive_loss(model(xa[idx]), ya[idx])
            loss.backward()
            opt.step()
            total += loss.item()
            steps += 1
        acc = knn_accuracy(model, xa, ya, xb, yb)
        print(f"epoch {epoch:2d} loss {total / steps:.4f} knn acc {acc:.3f}")


if __name__ == "__main__":
    main()
