"""Feed-forward classifier for the three wine cultivars."""

import argparse

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=40)
    p.add_argument("--lr", type=float, default=0.01)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--hidden", type=int, default=256)
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def load(seed):
    x, y = load_wine(return_X_y=True)
    x = x.astype(np.float32)
    y = y.astype(np.int64)
    return train_test_split(x, y, test_size=0.25, random_state=seed, stratify=y)


def build(hidden):
    return nn.Sequential(
        nn.Linear(13, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 3),
    )


def main():
    args = parse()
    torch.manual_seed(args.seed)
    x_train, x_test, y_train, y_test = load(args.seed)
    train_set = TensorDataset(torch.from_numpy(x_train), torch.from_numpy(y_train))
    loader = DataLoader(train_set, batch_size=args.batch, shuffle=True)
    x_test_t = torch.from_numpy(x_test)

    model = build(args.hidden)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)

    for epoch in range(args.epochs):
        model.train()
        losses = []
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            pred = model(x_test_t).argmax(1).numpy()
        print(f"epoch {epoch + 1:2d} loss {np.mean(losses):.4f} test acc {(pred == y_test).mean():.3f}")

    print(confusion_matrix(y_test, pred))


if __name__ == "__main__":
    main()
