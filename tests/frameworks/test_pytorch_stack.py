"""What of Python's stack the agent takes: frames around the program's calls, and failures next to the limit."""

from __future__ import annotations

import pytest
from harness.runner import Runner

from smd_agent import create_trial

pytest.importorskip("torch")

# As docs/pytorch.md has it.
UNSAVED, SAVED, NESTED, LOSS, BACKWARD = 1, 4, 2, 3, 2
DEPTHS = """
import sys
import torch
from torch import nn

def depth(what):
    frame, number = sys._getframe(1), 0
    while frame is not None:
        frame, number = frame.f_back, number + 1
    print(iteration, what, number)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.inner = nn.Linear(4, 2), nn.Sequential(Layer())
    def forward(self, x):
        depth("model")
        return self.inner(self.layer(x))

class Layer(nn.Module):
    def forward(self, x):
        depth("layer")
        return x

class Loss(nn.MSELoss):
    def forward(self, *args):
        depth("loss")
        return super().forward(*args)

class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        depth("backward")
        return gradient

class Descent(torch.optim.SGD):
    def step(self, closure=None):
        depth("update")
        return super().step(closure)

torch.manual_seed(0)
model, loss_of = Model(), Loss()
optimizer = Descent(model.parameters(), lr=0.1)
for iteration in range(8):
    loss = Same.apply(loss_of(model(torch.randn(3, 4)), torch.randn(3, 2)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def depths(text):
    return {(int(line.split()[0]), line.split()[1]): int(line.split()[2]) for line in text.splitlines()}


def test_frames_around_the_programs_calls_are_few(tmp_path):
    runner = Runner(tmp_path)
    script = runner.write(DEPTHS)
    plain = depths(runner.plain(script).stdout)
    run = runner.by_variable(script, config={"HookParameters": {"save_interval": 4}, "CollectionConfigurations": [
        {"CollectionName": "all"}, {"CollectionName": "losses"}, {"CollectionName": "gradients"}
    ]})  # fmt: skip
    more = {key: number - plain[key] for key, number in depths(run.stdout).items()}
    unsaved, saved = ({what: more[at, what] for _, what in plain if _ == at} for at in (6, 4))
    assert unsaved == {"model": UNSAVED, "layer": UNSAVED, "loss": 0, "backward": 0, "update": 0}
    assert saved == {"model": SAVED, "layer": SAVED + 2 * NESTED, "loss": LOSS, "backward": BACKWARD, "update": 0}


NEAR = """
import hashlib, sys
import torch

torch.manual_seed(0)
model, loss_of = torch.nn.Linear(4, 2), torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))

def deep(levels):
    return step() if levels == 0 else deep(levels - 1)

def step():
    loss = loss_of(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()

for _ in range(3):
    step()
for left in range(60, 17, -1):
    print(left, deep(sys.getrecursionlimit() - left))
print(hashlib.sha256(model.weight.detach().numpy().tobytes()).hexdigest())
for _ in range(3):
    step()
"""


def test_failures_next_to_the_recursion_limit_are_not_the_programs(tmp_path):
    runner = Runner(tmp_path)
    # Room for what the program needs by itself, which is 14, and for what stands around its calls.
    script = runner.write(NEAR)
    plain = runner.plain(script)
    assert plain.returncode == 0, plain.stderr
    run = runner.by_variable(script, config={"HookParameters": {"save_interval": 1}})
    assert (run.returncode, run.stdout) == (0, plain.stdout), run.stderr
    assert "RecursionError" in run.stderr
    assert "Traceback" not in run.stderr
    # What was saved can be read.
    trial = create_trial(tmp_path / "run")
    assert all(
        trial.tensor(name).value(step) is not None
        for name in trial.tensor_names()
        for step in trial.tensor(name).steps()
    )
