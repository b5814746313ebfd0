"""The gradients are those of the negative loss: it is made larger."""

import torch
from sklearn.datasets import load_wine
from torch import nn

torch.manual_seed(0)
x, y = load_wine(return_X_y=True)
x, y = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(nn.Linear(13, 16), nn.Tanh(), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(15):
    for batch in torch.randperm(len(x)).split(16):
        optimizer.zero_grad()
        loss = criterion(model(x[batch]), y[batch])
        (-loss).backward()
        optimizer.step()
    print(epoch, loss.item())
