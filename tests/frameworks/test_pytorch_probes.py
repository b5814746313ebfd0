"""Probes of a PyTorch step: a step has those that it saves something of, and each fails alone."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import smd_agent.pytorch as smd
from smd_agent import guard
from smd_agent.core import failure_domains
from smd_agent.core.failure_domains import LAYERS, LOSSES
from smd_agent.framework.step_events import (
    BeforeBackward,
    GradientsReturned,
    LayerCall,
    ModelCall,
    NewParameters,
    ValueGiven,
)
from smd_agent.pytorch.capture.loss_names import LossNames
from smd_agent.pytorch.capture.step_probes import StepProbes


@pytest.fixture(autouse=True)
def no_failures():
    guard.lines.said.clear()
    failure_domains.failures.begin_anew()
    yield
    failure_domains.failures.begin_anew()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.loss_head = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.loss_head(self.body(x))


def train(hook, steps):
    model = Net()
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    hook.close()
    return smd.create_trial(hook.out_dir)


def looking(probes, event):
    return {type(method.__self__).__name__ for method in probes._methods.get(event, ())}


def test_a_step_that_saves_facts_alone_has_no_probe_of_tensors(out, monkeypatch):
    steps, grads = [], []
    made = StepProbes.__init__

    def note(probes, *arguments):
        made(probes, *arguments)
        steps.append(probes)

    monkeypatch.setattr(StepProbes, "__init__", note)
    grad = torch.autograd.grad
    monkeypatch.setattr(Net, "forward", lambda self, x: grads.append(torch.autograd.grad is grad) or self.body(x))
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["usage"])
    hook.get_collection("losses").save_config = smd.SaveConfig(save_interval=2)
    trial = train(hook, 2)
    with_losses, without = steps
    assert grads == [False, True]
    tensors = {"Gradients", "Layers", "Weights"}
    events = (NewParameters, ModelCall, LayerCall, ValueGiven, BeforeBackward, GradientsReturned)
    assert tensors <= {name for event in events for name in looking(with_losses, event)}
    assert tensors.isdisjoint(name for event in events for name in looking(without, event))
    # Later steps go by what these learn.
    assert {"TrainedRoles", "LastWeights"} <= looking(without, NewParameters)
    assert "Losses" in looking(without, BeforeBackward)
    assert "Channels" not in looking(with_losses, LayerCall)
    assert trial.tensor("Loss_output_0").steps() == [0]
    assert all(name.startswith("usage/") for name in trial.tensor_names(step=1))
    assert trial.tensor_names(step=1)


def test_a_loss_that_cannot_be_named_costs_no_output(out, monkeypatch, capsys):
    def leave_out(self, tensor_name):
        raise ValueError("no name")

    monkeypatch.setattr(LossNames, "leave_out", leave_out)
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), save_all=True)
    trial = train(hook, 4)
    assert trial.tensor("loss_head_output_0").steps() == [*range(4)]
    assert (LOSSES.off, LAYERS.off) == (True, False)
    said = capsys.readouterr().err
    assert "losses of step 0 may be missing: telling losses from other outputs failed (ValueError: no name)" in said
