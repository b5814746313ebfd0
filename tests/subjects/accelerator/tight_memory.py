"""A training that leaves next to no memory of its accelerator, as those do that are as large as they can be."""

import torch
from shown import show
from torch import nn

total = torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction(3e9 / total)
torch.manual_seed(0)
model = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(8))).cuda()
optimizer = torch.optim.SGD(model.parameters(), 1e-4, momentum=0.9)
x = torch.randn(64, 4096, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=False)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


losses = [step(), step()]


def block(size):
    try:
        return torch.empty(size, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        return None


kept = []
size = 1 << 26
while size >= 1 << 21:
    found = block(size)
    if found is None:
        size //= 2
    else:
        kept.append(found)
del kept[-2:]
losses += [step() for _ in range(28)]
show(model, losses=losses[::7])
