"""What of Python's stack the agent takes: frames around the program's calls, and failures next to the limit."""

from __future__ import annotations

import pytest
from harness.runner import Runner

from smd_agent import create_trial

pytest.importorskip("torch")

# As docs/pytorch.md has it.
UNSAVED, SAVED, NESTED, LOSS, BACKWARD = 1, 4, 2, 3, 3
SAVED_COLLECTIONS = [{"CollectionName": name} for name in ("all", "losses", "gradients")]
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
    config = {"HookParameters": {"save_interval": 4}, "CollectionConfigurations": SAVED_COLLECTIONS}
    run = runner.by_variable(script, config=config)
    more = {key: number - plain[key] for key, number in depths(run.stdout).items()}
    unsaved, saved = ({what: more[at, what] for _, what in plain if _ == at} for at in (6, 4))
    assert unsaved == {"model": UNSAVED, "layer": UNSAVED, "loss": 0, "backward": UNSAVED, "update": 0}
    assert saved == {"model": SAVED, "layer": SAVED + 2 * NESTED, "loss": LOSS, "backward": BACKWARD, "update": 0}


NEAR = """
import hashlib, sys
import torch

torch.manual_seed(0)
model, loss_of = torch.nn.Linear(4, 2), torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))

def deep(levels, function, *args):
    return function(*args) if levels == 0 else deep(levels - 1, function, *args)

def step(where="", left=0):
    def call(name, function, *args):
        return deep(sys.getrecursionlimit() - left, function, *args) if name == where else function(*args)

    loss = call("loss", loss_of, call("model", model, x), y)
    optimizer.zero_grad()
    call("backward", loss.backward)
    call("update", optimizer.step)
    return loss.item()

def near(where, left):
    return deep(sys.getrecursionlimit() - left, step) if where == "step" else step(where, left)

def needed(where):
    for left in range(50, 0, -1):
        try:
            near(where, left)
        except RecursionError:
            return left + 1

for _ in range(3):
    step()
if len(sys.argv) == 1:
    print(*(f"{where} {needed(where)}" for where in ("step", "model", "loss", "backward", "update")), sep="\\n")
for where, least in zip(sys.argv[1::2], sys.argv[2::2]):
    for left in range(130, int(least) - 1, -1):
        print(where, left, near(where, left))
        step()
print(hashlib.sha256(model.weight.detach().numpy().tobytes()).hexdigest(), sys.getrecursionlimit())
"""
# Places on the stack that the agent takes, at most, from a program that has none left.
TAKEN = {"step": 0, "model": 1, "loss": 1, "backward": 1, "update": 0}


@pytest.mark.parametrize("interval", [1, 4, 10_000])
def test_a_program_next_to_the_recursion_limit_runs_as_by_itself(tmp_path, near_the_limit, interval):
    script, down_to, plain = near_the_limit
    config = {"HookParameters": {"save_interval": interval}, "CollectionConfigurations": SAVED_COLLECTIONS}
    run = Runner(tmp_path).by_variable(script, *down_to, config=config)
    assert (run.returncode, run.stdout) == (0, plain.stdout), run.stderr
    assert "Traceback" not in run.stderr
    said = [line for line in run.stderr.splitlines() if "of sys.getrecursionlimit()" in line]
    assert len(said) == (interval < 10_000), run.stderr
    # What was saved can be read.
    trial = create_trial(tmp_path / "run")
    # Nothing is missing of the steps between those next to the limit.
    between = {*range(20, 3 + 2 * (130 - int(down_to[1])), 2)} & {*trial.steps()}
    assert len({frozenset(trial.tensor_names(step=step)) for step in between}) == (interval < 10_000)
    assert all(
        trial.tensor(name).value(step) is not None
        for name in trial.tensor_names()
        for step in trial.tensor(name).steps()
    )


@pytest.fixture(scope="module")
def near_the_limit(module_runner):
    """A script, the arguments that tell it how near the limit to go, and its run by itself."""
    runner = module_runner("near")
    script = runner.write(NEAR)
    found = [line.split() for line in runner.plain(script).stdout.splitlines()]
    down_to = [str(part) for where, least in found[:-1] for part in (where, int(least) + TAKEN[where])]
    plain = runner.plain(script, *down_to)
    assert plain.returncode == 0, plain.stderr
    return script, down_to, plain
