"""Trains a two-layer network on standardised digit pixels."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(19)

pixels, labels = load_digits(return_X_y=True)
pixels = torch.tensor(pixels, dtype=torch.float32)
labels = torch.tensor(labels)
split = 1400
mean, std = pixels[:split].mean(0), pixels[:split].std(0)
pixels = (pixels - mean) / std

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(6):
    for idx in torch.randperm(split).split(50):
        opt.zero_grad()
        loss_fn(model(pixels[idx]), labels[idx]).backward()
        opt.step()
    with torch.no_grad():
        acc = (model(pixels[split:]).argmax(1) == labels[split:]).float().mean()
    print(f"epoch {epoch} accuracy {acc:.3f}")
