"""Trains a regression network on scikit-learn's diabetes table."""

import torch
from sklearn.datasets import load_diabetes
from torch import nn

torch.manual_seed(1)

data = load_diabetes()
features = torch.tensor(data.data, dtype=torch.float32)
target = torch.tensor(data.target, dtype=torch.float32)
features = (features - features[:350].mean(0)) / features[:350].std(0)
target = (target - target[:350].mean()) / target[:350].std()

x_train, y_train = features[:350], target[:350]
x_test, y_test = features[350:], target[350:]


def mse(prediction, actual):
    return ((prediction - actual) ** 2).mean()


model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)

for epoch in range(20):
    model.train()
    running = 0.0
    for idx in torch.randperm(len(x_train)).split(35):
        optimizer.zero_grad()
        loss = mse(model(x_train[idx]), y_train[idx])
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(f"epoch {epoch + 1:2d}  train mse {running / 10:.3f}")

model.eval()
with torch.no_grad():
    guess = model(x_test).squeeze(1)
r2 = 1 - ((guess - y_test) ** 2).sum() / ((y_test - y_test.mean()) ** 2).sum()
print(f"R2 on held-out patients {r2:.3f}")
