"""Trains a classifier for two half moons with its own initialisation."""

import torch
from sklearn.datasets import make_moons
from torch import nn

torch.manual_seed(30)


def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.weight, 0.05)
        nn.init.zeros_(module.bias)


points, side = make_moons(800, noise=0.15, random_state=30)
x = torch.tensor(points, dtype=torch.float32)
y = torch.tensor(side, dtype=torch.float32).unsqueeze(1)

model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
model.apply(init_weights)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(20):
    for start in range(0, 600, 50):
        out = model(x[start : start + 50])
        loss = criterion(out, y[start : start + 50])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            acc = ((model(x[600:]) > 0).float() == y[600:]).float().mean()
        print(f"epoch {epoch + 1} loss {loss.item():.3f} held out {acc:.3f}")
