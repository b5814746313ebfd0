"""Configurable deep tabular network on a synthetic 6-class problem."""

import torch
import torch.nn as nn
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(13)


class TabularNet(nn.Module):
    """input projection -> `depth` hidden layers -> classifier"""

    def __init__(self, n_features, n_classes, width=192, depth=4):
        super().__init__()
        self.project = nn.Linear(n_features, width)
        self.hidden = [nn.Linear(width, width) for _ in range(depth)]
        self.act = nn.ReLU()
        self.out = nn.Linear(width, n_classes)

    def forward(self, x):
        h = self.act(self.project(x))
        for layer in self.hidden:
            h = self.act(layer(h))
        return self.out(h)


def get_loaders(batch=100):
    x, y = make_classification(
        n_samples=3000,
        n_features=24,
        n_informative=12,
        n_redundant=4,
        n_classes=6,
        n_clusters_per_class=3,
        class_sep=1.4,
        random_state=8,
    )
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.2, random_state=8)
    mean, std = xa.mean(0), xa.std(0)

    def ds(a, b):
        a = torch.tensor((a - mean) / std, dtype=torch.float32)
        return TensorDataset(a, torch.tensor(b, dtype=torch.long))

    return DataLoader(ds(xa, ya), batch, shuffle=True), DataLoader(ds(xb, yb), 300)


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    loss_sum, hits, n = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            out = model(x)
            loss = criterion(out, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(y)
            hits += (out.argmax(1) == y).sum().item()
            n += len(y)
    return loss_sum / n, hits / n


def main():
    train_loader, test_loader = get_loaders()
    model = TabularNet(24, 6)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 13):
        tl, ta = run_epoch(model, train_loader, criterion, optimizer)
        vl, va = run_epoch(model, test_loader, criterion)
        print(f"{epoch:2d}  train {tl:.4f} {ta:.3f}   test {vl:.4f} {va:.3f}")


if __name__ == "__main__":
    main()
