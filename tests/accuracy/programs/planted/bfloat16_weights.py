"""Weights in bfloat16 and a small learning rate: updates are lost in rounding."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16).to(torch.bfloat16), torch.tensor(y)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(torch.bfloat16)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
for epoch in range(3):
    for batch in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[batch]).float(), y[batch])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
