"""A training that tries a batch that is too large, and goes on with half of it."""

import torch
from shown import show
from torch import nn

total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction(1e9 / total)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
size = 1 << 18
while True:
    try:
        x = torch.ones(size, 512, device="cuda")
        loss = model(x).square().mean()
        loss.backward()
        break
    except torch.OutOfMemoryError:
        optimizer.zero_grad(set_to_none=True)
        x = loss = None
        torch.cuda.empty_cache()
        size //= 2
print("batch", size)
for _ in range(20):
    optimizer.zero_grad()
    loss = model(torch.randn(size, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
show(model, losses=[loss])
