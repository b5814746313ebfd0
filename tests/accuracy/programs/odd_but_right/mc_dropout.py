"""Trains a regression network that tells its uncertainty by keeping dropout on when it predicts."""

import torch
from torch import nn

torch.manual_seed(74)


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(1, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1)
        )
        self.mean = nn.Linear(64, 1)
        self.log_std = nn.Linear(64, 1)

    def forward(self, x):
        h = self.layers(x)
        return self.mean(h), self.log_std(h)


def nll(mean, log_std, y):
    """Up to a constant; with a small spread a density is above one and its negative logarithm below zero."""
    return (log_std + 0.5 * ((y - mean) / log_std.exp()) ** 2).mean()


def spread(model, x, draws=30):
    model.train()
    with torch.no_grad():
        return torch.stack([model(x)[0] for _ in range(draws)]).std(0).mean().item()


x = torch.rand(800, 1) * 2 - 1
y = torch.sin(3 * x) + (0.05 + 0.1 * x.abs()) * torch.randn_like(x)
model = Regressor()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(16):
    for idx in torch.randperm(800).split(50):
        loss = nll(*model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    if epoch % 4 == 3:
        near, far = spread(model, torch.rand(50, 1) - 0.5), spread(model, torch.rand(50, 1) + 3)
        print(f"epoch {epoch + 1} loss {loss.item():.3f} spread inside {near:.3f} outside {far:.3f}")
