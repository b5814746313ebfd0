"""Pre-train on the digits 0 to 4, then freeze the trunk, replace the head and learn 5 to 9; at last unfreeze all."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
digits = load_digits()
images = torch.tensor(digits.images / 16 - 0.3, dtype=torch.float32).unsqueeze(1)
labels = torch.tensor(digits.target)
low, high = labels < 5, labels >= 5


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 24, 3, padding=1), nn.ReLU()
        )
        self.norm = nn.BatchNorm1d(24)
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.norm(self.trunk(x).mean((2, 3))))


def fit(model, optimizer, x, y, epochs):
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    for _ in range(epochs):
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.4f}")


model = Net(5)
fit(model, torch.optim.Adam(model.parameters(), lr=5e-3), images[low], labels[low], 3)
for parameter in model.parameters():
    parameter.requires_grad = False
model.head = nn.Linear(24, 5)
fit(model, torch.optim.Adam(model.head.parameters(), lr=1e-2), images[high], labels[high] - 5, 3)
for parameter in model.parameters():
    parameter.requires_grad = True
groups = [
    {"params": model.trunk.parameters(), "lr": 3e-4},
    {"params": [*model.norm.parameters(), *model.head.parameters()]},
]
fit(model, torch.optim.AdamW(groups, lr=2e-3), images[high], labels[high] - 5, 2)
