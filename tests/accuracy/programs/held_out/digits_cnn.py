"""Small convolutional classifier for the 8x8 digits."""

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
np.random.seed(3)

BATCH = 64
EPOCHS = 10


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 48, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(48, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.head = nn.Linear(64 * 2 * 2, 10)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def make_loaders():
    digits = load_digits()
    x = (digits.images / 16.0).astype(np.float32)[:, None]
    y = digits.target.astype(np.int64)
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.2, stratify=y, random_state=0)
    train = TensorDataset(torch.from_numpy(xa), torch.from_numpy(ya))
    test = TensorDataset(torch.from_numpy(xb), torch.from_numpy(yb))
    return DataLoader(train, BATCH, shuffle=True), DataLoader(test, 256)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = total = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum().item()
        total += len(y)
    return hits / total


def main():
    train_loader, test_loader = make_loaders()
    model = DigitNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(1, EPOCHS + 1):
        model.train()
        running = 0.0
        for x, y in train_loader:
            logits = model(x)
            loss = criterion(logits, y)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(y)
        train_loss = running / len(train_loader.dataset)
        acc = evaluate(model, test_loader)
        print(f"epoch {epoch:2d}  loss {train_loss:.4f}  test acc {acc:.3f}")


if __name__ == "__main__":
    main()
