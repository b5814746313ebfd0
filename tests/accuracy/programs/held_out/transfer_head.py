"""Pretrain a body on digits 0-4, then move it to digits 5-9 with a new head."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

torch.manual_seed(41)


class Classifier(nn.Module):
    def __init__(self, n_classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(64, 384),
            nn.ReLU(),
            nn.Linear(384, 384),
            nn.ReLU(),
        )
        self.fc = nn.Linear(384, n_classes)

    def forward(self, x):
        return self.fc(self.backbone(x))


def subset(classes):
    d = load_digits()
    keep = [i for i, t in enumerate(d.target) if t in classes]
    x = torch.tensor(d.data[keep] / 16.0, dtype=torch.float32)
    y = torch.tensor([classes.index(t) for t in d.target[keep]])
    ia, ib = train_test_split(range(len(y)), test_size=0.25, random_state=3, stratify=y)
    return x[ia], y[ia], x[ib], y[ib]


def fit(model, optimizer, data, epochs, tag):
    xa, ya, xb, yb = data
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(xa)).split(64):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xa[idx]), ya[idx])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            acc = (model(xb).argmax(1) == yb).float().mean().item()
        print(f"{tag} epoch {epoch + 1:2d} loss {total / len(xa):.4f} acc {acc:.3f}")


def main():
    source = subset([0, 1, 2, 3, 4])
    target = subset([5, 6, 7, 8, 9])

    model = Classifier(5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    fit(model, optimizer, source, 8, "pretrain")

    # keep the learned features, train only a fresh head on the new classes
    for p in model.backbone.parameters():
        p.requires_grad = False
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
    model.fc = nn.Linear(384, 5)
    fit(model, optimizer, target, 12, "transfer")


if __name__ == "__main__":
    main()
