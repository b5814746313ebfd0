"""The labels are taken from the wrong column: all of them are 0."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
x, _ = load_digits(return_X_y=True)
y = torch.tensor(x[:, 0]).long()
x = torch.tensor(x / 16, dtype=torch.float32)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    for batch in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
