"""Trains one risk model on records of four clinics that arrive in turn."""

import torch
from torch import nn

torch.manual_seed(13)
CLINICS = 4


def records(clinic, n):
    """Every clinic uses another part of the form, and its own column for the outcome's cause."""
    x = torch.zeros(n, 4 * CLINICS)
    x[:, 4 * clinic : 4 * clinic + 4] = torch.randn(n, 4)
    cause = x[:, 4 * clinic] - x[:, 4 * clinic + 1] * x[:, 4 * clinic + 2]
    return x, (cause > 0).float()


def stream(rounds, size=16):
    for _ in range(rounds):
        for clinic in range(CLINICS):
            yield records(clinic, size)


model = nn.Sequential(nn.Linear(4 * CLINICS, 48), nn.ReLU(), nn.Linear(48, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loss_fn = nn.BCEWithLogitsLoss()
accumulate = CLINICS

for i, (x, y) in enumerate(stream(300)):
    optimizer.zero_grad()
    loss = loss_fn(model(x).squeeze(1), y) / accumulate
    loss.backward()
    if (i + 1) % accumulate == 0:
        optimizer.step()
    if i % 240 == 0:
        print(f"batch {i} loss {loss.item() * accumulate:.3f}")

with torch.no_grad():
    for clinic in range(CLINICS):
        x, y = records(clinic, 500)
        acc = ((model(x).squeeze(1) > 0).float() == y).float().mean()
        print(f"clinic {clinic}: accuracy {acc:.3f}")
