"""Trains a regularised network on a table of measurements."""

import torch
from sklearn.datasets import make_classification
from torch import nn


def make_model(width=64, keep=0.9):
    return nn.Sequential(
        nn.Linear(24, width),
        nn.ReLU(),
        nn.Dropout(keep),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Dropout(keep),
        nn.Linear(width, 5),
    )


def main():
    torch.manual_seed(44)
    x, y = make_classification(
        1600, 24, n_informative=10, n_classes=5, n_clusters_per_class=2, class_sep=1.6, random_state=44
    )
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
    x = (x - x[:1200].mean(0)) / x[:1200].std(0)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(14):
        model.train()
        for idx in torch.randperm(1200).split(60):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            acc = (model(x[1200:]).argmax(1) == y[1200:]).float().mean()
        print(f"epoch {epoch} loss {loss.item():.3f} accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
