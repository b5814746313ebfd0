"""Trains and evaluates while a profiler wraps what the agent has replaced, and prints what it counts.

argv: the profiler's file and what it wraps, the order in which wrappers are taken off, "eager" or "compiled".
"""

import hashlib
import sys
from pathlib import Path

import torch
from torch import nn

sys.path.append(str(Path(__file__).parents[1] / "shared"))
from wrapping import Profiler

profiler = Profiler(*sys.argv[1:3], torch.compiler.is_compiling)
order, compiled = sys.argv[3], sys.argv[4] == "compiled"
torch.manual_seed(0)
digest = hashlib.sha1()
criterion = nn.MSELoss()


def two_losses(output, target):
    return criterion(output, target) + nn.functional.l1_loss(output, target)


def compile_eagerly(function):
    return torch.compile(function, backend="eager", fullgraph=True) if compiled else function


def train(between=None):
    optimizer.zero_grad()
    output = called(torch.randn(3, 4))
    if between:
        between()
    loss = losses(output, torch.ones(3, 2))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    digest.update(loss.detach().numpy().tobytes())


def evaluate(between=None):
    model.eval()
    with torch.no_grad():
        output = called(torch.randn(3, 4))
        if between:
            between()
        loss = losses(output, torch.ones(3, 2)) + nn.functional.mse_loss(output, torch.zeros(3, 2))
    digest.update(loss.numpy().tobytes())
    model.train()


def inside():
    profiler.wrap("inside")
    try:
        torch.zeros(1).backward()
    except RuntimeError as error:
        print(type(error).__name__)


profiler.wrap("imported")
model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2))
called, losses = compile_eagerly(model), compile_eagerly(two_losses)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
profiler.wrap("armed")
print(torch.func.grad(lambda w: (w * w).sum())(torch.ones(2)).tolist())
train()
train()
profiler.wrap("found")
train(inside)
train()
evaluate(lambda: profiler.wrap("evaluating"))
evaluate()
for _ in range(2):
    train(lambda: profiler.take_off(20, order))
profiler.take_off(30, order)
evaluate(lambda: profiler.take_off(25, order))
train()
train(lambda: profiler.take_off(1000, order))
train()
for value in model.parameters():
    digest.update(value.detach().numpy().tobytes())
print(profiler.told())
print(digest.hexdigest())
