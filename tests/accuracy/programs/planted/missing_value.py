"""One cell of the table is missing and is read as NaN."""

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn

torch.manual_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x = (x - x.mean(0)) / x.std(0)
x[np.random.default_rng(0).integers(len(x)), 7] = np.nan
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    for batch in torch.randperm(len(x)).split(32):
        optimizer.zero_grad()
        loss = criterion(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
