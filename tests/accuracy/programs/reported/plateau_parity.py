"""Trains a network on a five-bit parity among noise bits; the learning rate follows the validation score."""

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

torch.manual_seed(27)


def bits(n):
    x = torch.randint(0, 2, (n, 10)).float()
    return 2 * x - 1, (x[:, 0] + x[:, 3] + x[:, 5] + x[:, 7] + x[:, 8]).remainder(2).long()


x_train, y_train = bits(1500)
x_val, y_val = bits(500)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = ReduceLROnPlateau(optimizer, factor=0.2, patience=1)

for epoch in range(14):
    model.train()
    for idx in torch.randperm(1500).split(50):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_acc = (model(x_val).argmax(1) == y_val).float().mean().item()
    scheduler.step(val_acc)
    print(f"epoch {epoch}: loss {loss.item():.3f} val acc {val_acc:.3f}")
