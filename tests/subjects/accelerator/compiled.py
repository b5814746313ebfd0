import sys

import torch
from shown import show
from torch import nn

mode = sys.argv[1] if len(sys.argv) > 1 else None
torch.manual_seed(0)
net = nn.Sequential(
    nn.Linear(64, 256), nn.GELU(), nn.LayerNorm(256), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 8)
).cuda()
model = torch.compile(net, mode=mode)
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
x, y = torch.randn(512, 64, device="cuda"), torch.randint(0, 8, (512,), device="cuda")
losses = []
for _epoch in range(12):
    for i in range(0, 512, 64):
        loss = nn.functional.cross_entropy(model(x[i : i + 64]), y[i : i + 64])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    losses.append(loss.item())
show(net, losses=losses)
