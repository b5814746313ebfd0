"""Pretrains a network on two grape varieties' measurements, then fine-tunes it to tell three wines apart."""

import torch
from sklearn.datasets import load_wine
from torch import nn

torch.manual_seed(4)


class WineNet(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 16), nn.ReLU())
        self.head = nn.Linear(16, outputs)

    def forward(self, x):
        return self.head(self.backbone(x))


def fit(model, optimizer, x, y, epochs, name):
    for epoch in range(epochs):
        for idx in torch.randperm(len(x)).split(16):
            loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 5 == 4:
            print(f"{name} epoch {epoch + 1} loss {loss.item():.3f}")


wine = load_wine()
x = torch.tensor(wine.data, dtype=torch.float32)
y = torch.tensor(wine.target)
order = torch.randperm(len(x))
x, y = x[order], y[order]
train, test = slice(0, 128), slice(128, None)
x = (x - x[train].mean(0)) / x[train].std(0)

model = WineNet(outputs=2)
two = y[train] < 2
fit(model, torch.optim.SGD(model.parameters(), lr=0.1), x[train][two], y[train][two], 10, "pretraining")

optimizer = torch.optim.SGD(
    [{"params": model.backbone.parameters(), "lr": 0.005}, {"params": model.head.parameters(), "lr": 0.1}], lr=0.1
)
model.head = nn.Linear(16, 3)
fit(model, optimizer, x[train], y[train], 10, "fine-tuning")

with torch.no_grad():
    acc = (model(x[test]).argmax(1) == y[test]).float().mean()
print(f"accuracy on three wines {acc:.3f}")
