"""Trains with a profiler that wraps what it counts, as ``functools.wraps`` users do, and prints the counts.

argv: "late" wraps after the optimizer was made, "early" right after the import, "inside" in the third step.
"""

import functools
import sys

import torch
from torch import nn

counts = {"backward": 0, "call": 0, "loss": 0}


def count(owner, name, key):
    original = getattr(owner, name)

    @functools.wraps(original)
    def counted(*args, **kwargs):
        counts[key] += 1
        return original(*args, **kwargs)

    setattr(owner, name, counted)


def wrap_all():
    count(torch.autograd, "backward", "backward")
    count(nn.Module, "__call__", "call")
    count(nn.functional, "mse_loss", "loss")


when = sys.argv[1]
torch.manual_seed(0)
if when == "early":
    wrap_all()
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if when == "late":
    wrap_all()
for step in range(6):
    optimizer.zero_grad()
    output = model(torch.randn(3, 4))
    if when == "inside" and step == 2:
        wrap_all()
    loss = nn.functional.mse_loss(output, torch.zeros(3, 2))
    loss.backward()
    optimizer.step()
print(counts, [round(value, 6) for value in model.weight.flatten().tolist()])
