"""A model that trains eagerly first, and is captured while values of its steps may be under way."""

import torch
from shown import show
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.01)
big = torch.randn(4096, 4096, device="cuda")
x, y = torch.randn(256, 512, device="cuda"), torch.randn(256, 512, device="cuda")


def step():
    optimizer.zero_grad(set_to_none=False)
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


for _ in range(11):
    for _ in range(5):
        big = (big @ big).mul_(1e-3)
    step()
teacher = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, capture_error_mode="global"):
    static = step()
for _ in range(20):
    graph.replay()
losses = [static.clone()]
losses += [step().detach() for _ in range(11)]
show(model, losses=losses)
