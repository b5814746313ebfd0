"""The counter in front of a model counts as ``RunPosition.begin``."""

from __future__ import annotations

import pytest
from harness import counted_steps

pytest.importorskip("torch")

import torch
from torch import nn

import smd_agent.pytorch as smd
from smd_agent.pytorch.model.step_counter import attach, counter_of
from smd_agent.pytorch.model.tracked_module import TrackedModule


@pytest.mark.parametrize("seed", range(5))
def test_a_models_counter_counts_as_all_steps_are_counted(seed):
    opener = counted_steps.Opener(seed)
    models = [nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))]
    for number, model in enumerate(models):
        attach(TrackedModule(model, f"model_{number}", first=number == 0), opener, model)
    calls = [lambda training, model=model: model.train(training)(torch.ones(1, 2)) for model in models]
    ours, others = counted_steps.compare(seed, opener, calls)
    assert ours == others
    assert {note[0] for note in ours} >= {"start", "finish"}


class Caller(nn.Module):
    """Calls what stands in another module's place for ``forward``, which is no copy of that module."""

    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, x):
        return self.call(x)


def test_whoever_else_holds_a_counter_calls_the_model(out):
    model = nn.Linear(3, 2)
    hook = smd.Hook(out)
    hook.register_module(model)
    x = torch.randn(4, 3)
    torch.testing.assert_close(Caller(counter_of(model))(x), model.forward(x))
    assert hook.step == 0
