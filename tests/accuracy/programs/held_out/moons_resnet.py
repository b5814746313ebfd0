"""Residual MLP on noisy two moons with a step learning-rate schedule."""

import torch
import torch.nn as nn
from sklearn.datasets import make_moons
from sklearn.model_selection import train_test_split
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)

CONFIG = {
    "batch_size": 50,
    "epochs": 12,
    "lr": 0.05,
    "lr_step": 4,  # epochs between two reductions
    "lr_gamma": 0.3,
    "width": 128,
    "blocks": 3,
}


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, width),
        )

    def forward(self, x):
        return x + self.net(x)


class ResMLP(nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.inp = nn.Linear(2, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(blocks)])
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.blocks(self.inp(x))).squeeze(-1)


def get_data():
    x, y = make_moons(1600, noise=0.15, random_state=4)
    xa, xb, ya, yb = train_test_split(x, y, test_size=0.25, random_state=4)
    f = lambda a: torch.tensor(a, dtype=torch.float32)
    return TensorDataset(f(xa), f(ya)), TensorDataset(f(xb), f(yb))


def train_one_epoch(model, loader, optimizer, scheduler, criterion):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.no_grad()
def accuracy(model, ds):
    model.eval()
    x, y = ds.tensors
    return ((model(x) > 0).float() == y).float().mean().item()


def main():
    train_set, test_set = get_data()
    loader = DataLoader(train_set, CONFIG["batch_size"], shuffle=True)
    model = ResMLP(CONFIG["width"], CONFIG["blocks"])
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"])
    scheduler = StepLR(optimizer, CONFIG["lr_step"], CONFIG["lr_gamma"])
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(CONFIG["epochs"]):
        loss = train_one_epoch(model, loader, optimizer, scheduler, criterion)
        print(f"epoch {epoch + 1:2d}: loss {loss:.4f}, test acc {accuracy(model, test_set):.3f}")


if __name__ == "__main__":
    main()
