"""Trains a small residual net that is healthy, or sick in a way that its first argument names; 500 tensors on request.

``nan``: one element of one batch is NaN. ``orphan``: the head is replaced after the optimizer was made.
``frozen``: the optimizer does not have the stem. ``fixed``: the stem is not to be trained, and half of the blocks have
no gradient. ``large``: a healthy one of 121 layers.
"""

import sys

import torch
from torch import nn

KIND = sys.argv[1]
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(x)))


class Net(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.stem, self.head = nn.Linear(12, 16), nn.Linear(16, 4)
        self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


net = Net(61 if KIND == "large" else 2)
truth = torch.randn(12, 4)
trained = [*net.blocks.parameters(), *net.head.parameters()] if KIND == "frozen" else net.parameters()
optimizer = torch.optim.AdamW(trained, 3e-3)
if KIND == "fixed":
    net.stem.requires_grad_(False)
    net.blocks[1].forward = lambda x: x
if KIND == "orphan":
    net.head = nn.Linear(16, 4)
criterion = nn.CrossEntropyLoss()
for step in range(120):
    x = torch.randn(64, 12)
    y = (x @ truth).argmax(1)
    if KIND == "nan" and step == 67:
        x[3, 5] = float("nan")
    optimizer.zero_grad()
    loss = criterion(net(x), y)
    loss.backward()
    optimizer.step()
print(sum(float(parameter.detach().sum()) for parameter in net.parameters()))
