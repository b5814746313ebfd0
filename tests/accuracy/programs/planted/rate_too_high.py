"""SGD on standardized data with a learning rate a hundred times too high."""

import torch
from sklearn.datasets import load_diabetes
from torch import nn

torch.manual_seed(0)
x, y = load_diabetes(return_X_y=True)
x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32).unsqueeze(1)
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=2.0, momentum=0.9)
for epoch in range(8):
    for batch in torch.randperm(len(x)).split(32):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
