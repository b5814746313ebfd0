"""Steps of PyTorch of which nobody wants to know: no function of ours sees their updates and backward passes."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

WATCHED = """
import sys
import torch
from torch import nn
from torch.optim import optimizer as optimizers

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(40):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).square().mean().backward()
    optimizer.step()
backward = torch.autograd.backward.__code__
print(len(optimizers._global_optimizer_pre_hooks), backward.co_filename == torch.autograd.__file__)
print(sys.modules["smd_agent.pytorch.optimizer_watch"].updates.marks.wanted)
"""


@pytest.mark.parametrize(
    "off, seen",
    [
        ({"series": False, "tap": False}, ["0 True", "False"]),
        ({"series": False, "tap": False, "save_last": True}, ["0 True", "True"]),
        ({"series": False}, ["1 True", "False"]),
        ({"tap": False}, ["1 False", "False"]),
    ],
)
def test_nothing_is_told_of_every_step_that_nobody_wants_to_know(runner, off, seen):
    script = runner.write(WATCHED)
    config = {"HookParameters": {"save_interval": 30, **off}}
    ran = runner.by_variable(script, config=config, SMD_AGENT_STRICT="1")
    assert ran.stdout.splitlines() == seen, ran.stderr
