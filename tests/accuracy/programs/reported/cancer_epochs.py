"""Trains a tumour classifier on the breast cancer table, shuffled anew in every epoch."""

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

torch.manual_seed(37)


class Shuffled:
    """Yields the batches of one epoch after another."""

    def __init__(self, features, labels, size):
        self.features, self.labels, self.size = features, labels, size

    def __len__(self):
        return -(-len(self.features) // self.size)

    def __iter__(self):
        self.features = self.features[torch.randperm(len(self.features))]
        for start in range(0, len(self.features), self.size):
            yield self.features[start : start + self.size], self.labels[start : start + self.size]


table = load_breast_cancer()
x = torch.tensor(table.data, dtype=torch.float32)
y = torch.tensor(table.target, dtype=torch.float32)
x = (x - x[:450].mean(0)) / x[:450].std(0)

batches = Shuffled(x[:450], y[:450], 30)
model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(12):
    model.train()
    total = 0.0
    for xb, yb in batches:
        optimizer.zero_grad()
        loss = criterion(model(xb).squeeze(1), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        acc = ((model(x[450:]).squeeze(1) > 0).float() == y[450:]).float().mean()
    print(f"epoch {epoch} loss {total / len(batches):.3f} test accuracy {acc:.3f}")
