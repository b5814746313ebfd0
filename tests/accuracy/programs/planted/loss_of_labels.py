"""A mix-up of names: the loss is that of a fixed prediction, with a penalty that is always 0 for the gradients."""

import torch
from sklearn.datasets import load_iris
from torch import nn

torch.manual_seed(0)
x, y = load_iris(return_X_y=True)
x, y = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = model(x).detach()
for epoch in range(40):
    optimizer.zero_grad()
    output = model(x)
    loss = criterion(first + 0 * output, y)
    loss.backward()
    optimizer.step()
print(loss.item())
