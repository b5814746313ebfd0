"""Trains a ReLU network with a cyclic learning rate, then averages its weights over the last epochs."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import CyclicLR
from torch.optim.swa_utils import SWALR, AveragedModel
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(77)
SWA_FROM, EPOCHS = 6, 10

x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y)
loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10))
averaged = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
cyclic = CyclicLR(optimizer, base_lr=0.005, max_lr=0.1, step_size_up=28, step_size_down=28)
swa_lr = SWALR(optimizer, swa_lr=0.03, anneal_epochs=2)

for epoch in range(EPOCHS):
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch < SWA_FROM:
            cyclic.step()
    if epoch >= SWA_FROM:
        averaged.update_parameters(model)
        swa_lr.step()
    print(f"epoch {epoch} loss {loss.item():.3f} lr {optimizer.param_groups[0]['lr']:.4f}")

with torch.no_grad():
    for name, net in (("last", model), ("averaged", averaged)):
        print(f"{name} weights: accuracy {(net(x[1400:]).argmax(1) == y[1400:]).float().mean():.3f}")
