"""Forty examples, a large net and no end: the validation loss rises while the training loss falls to 0."""

import torch
from sklearn.datasets import load_diabetes
from torch import nn

torch.manual_seed(0)
x, y = load_diabetes(return_X_y=True)
x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32).unsqueeze(1)
model = nn.Sequential(nn.Linear(10, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(30):
    model.train()
    for batch in torch.randperm(40).split(10):
        optimizer.zero_grad()
        loss = criterion(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        validation = criterion(model(x[40:]), y[40:])
    if epoch % 10 == 9:
        print(epoch, loss.item(), validation.item())
