"""The counter in front of a model: it counts as ``RunPosition.begin``, and knows a copied ``__dict__``."""

from __future__ import annotations

import pytest
from harness import counted_steps

pytest.importorskip("torch")

import torch
from torch import nn

import smd_agent.pytorch as smd
from smd_agent.pytorch.model import copied_counter
from smd_agent.pytorch.model.step_counter import SLOT, TrackedModule


@pytest.mark.parametrize("seed", range(5))
def test_a_models_counter_counts_as_all_steps_are_counted(seed):
    opener = counted_steps.Opener(seed)
    models = [nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))]
    for number, model in enumerate(models):
        TrackedModule(model, f"model_{number}", first=number == 0).attach(opener, model)
    calls = [lambda training, model=model: model.train(training)(torch.ones(1, 2)) for model in models]
    ours, others = counted_steps.compare(seed, opener, calls)
    assert ours == others
    assert {note[0] for note in ours} >= {"start", "finish"}


def copy_of(model):
    clone = nn.Linear.__new__(nn.Linear)
    clone.__dict__ = model.__dict__.copy()
    clone._parameters = {name: p.detach() * 2 for name, p in model._parameters.items()}
    return clone


def test_this_interpreters_references_tell_a_copied_dict():
    assert copied_counter.usual_references > 0


@pytest.mark.parametrize("measured", [True, False])
@pytest.mark.parametrize("interval", [1, 1000])
def test_a_copied_dict_is_told_apart_whether_references_tell_it_or_not(out, monkeypatch, measured, interval):
    if not measured:
        monkeypatch.setattr(copied_counter, "usual_references", -1)
    model = nn.Linear(3, 2)
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=interval))
    hook.register_module(model)
    x = torch.randn(4, 3)
    clones = []
    for step in range(300):
        with torch.no_grad():
            model(x)
        assert hook.step == step
        if step in (0, 1, 250):
            clones.append(copy_of(model))
        for clone in clones:
            torch.testing.assert_close(clone(x), 2 * model.forward(x))
        if step == 290:
            clones.clear()
    hook.close()


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
    torch.testing.assert_close(Caller(model.__dict__[SLOT])(x), model.forward(x))
    assert hook.step == 0
