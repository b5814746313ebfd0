"""A loop whose author forbids that anything waits for the accelerator."""

import sys

import torch
from shown import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.05)
criterion = nn.CrossEntropyLoss()
xs, ys = torch.randn(20, 64, 32, device="cuda"), torch.randint(0, 10, (20, 64), device="cuda")
torch.cuda.synchronize()
losses = []
torch.cuda.set_sync_debug_mode(sys.argv[1])
for i in range(60):
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(xs[i % 20]), ys[i % 20])
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
torch.cuda.set_sync_debug_mode("default")
show(model, losses=losses[::12])
