"""Wine by LBFGS on all data at once, then a few plain epochs with another optimizer."""

import torch
from sklearn.datasets import load_wine
from torch import nn

torch.manual_seed(0)
x, y = load_wine(return_X_y=True)
x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
y = torch.tensor(y)
model = nn.Sequential(nn.Linear(13, 10), nn.Tanh(), nn.Linear(10, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=4)


def closure():
    optimizer.zero_grad()
    loss = criterion(model(x), y) + 1e-3 * sum(p.square().sum() for p in model.parameters())
    loss.backward()
    return loss


for _ in range(12):
    optimizer.step(closure)
sgd = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(5):
    for batch in torch.randperm(len(x)).split(32):
        sgd.zero_grad()
        criterion(model(x[batch]), y[batch]).backward()
        sgd.step()
print(criterion(model(x), y).item())
