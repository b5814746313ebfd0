"""NoGradient, on models that the loss does not reach, or not all of."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import NoGradient
from smd_agent.rules.finding import Severity


class Net(nn.Module):
    """An encoder and two heads, of which the second one is ``aside``: called, but not part of the loss."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.encoder, self.inner = nn.Sequential(nn.Linear(6, 8), nn.ReLU()), nn.Linear(8, 8)
        self.aside, self.head = nn.Linear(8, 2), nn.Linear(8, 3)

    def forward(self, x):
        hidden = self.encoder(x)
        if self.how == "detached":
            hidden = hidden.detach()
        with torch.set_grad_enabled(self.how != "no_grad"):
            hidden = self.inner(hidden)
        if self.how == "aside":
            self.aside(hidden)
        return self.head(hidden)


def steps(model, optimizer, count=6, how=""):
    for _ in range(count):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 3, (16,)))
        if how == "closure":
            optimizer.step(lambda loss=loss: loss.backward())
            continue
        if how != "no_backward":
            loss.backward()
        if how == "cleared":
            optimizer.zero_grad()
        optimizer.step()


def net(how, count=6):
    def training(capture):
        model = Net(how)
        capture(model)
        steps(model, torch.optim.AdamW(model.parameters(), 1e-2), count, how)

    return training


@pytest.mark.parametrize("how", ["no_backward", "cleared"])
def test_nothing_has_a_gradient(trained, how):
    (found,) = trained(net(how)).findings(NoGradient())
    assert (found.severity, found.tensor) == (Severity.PROBLEM, "parameters/Net")
    assert (found.first_step, found.last_step, found.steps) == (0, 5, 6)
    assert found.evidence == {"without": 8, "with_gradient": 0}


@pytest.mark.parametrize("how, layers", [("detached", ["encoder.0"]), ("no_grad", ["encoder.0", "inner"])])
def test_gradients_end_before_the_first_layers(trained, how, layers):
    found = trained(net(how)).findings(NoGradient())
    assert {one.tensor for one in found} == {f"Net_{layer}.{kind}" for layer in layers for kind in ("weight", "bias")}
    assert {one.severity for one in found} == {Severity.WARNING}


def test_an_output_that_is_not_part_of_the_loss(trained):
    found = trained(net("aside")).findings(NoGradient())
    assert {(one.tensor, one.severity) for one in found} == {
        ("Net_aside.bias", Severity.NOTE),
        ("Net_aside.weight", Severity.NOTE),
    }


@pytest.mark.parametrize("how", ["", "closure"])
def test_a_part_that_is_not_called_and_what_is_well(trained, how):
    assert trained(net(how)).findings(NoGradient()) == []


@pytest.mark.parametrize("count, finds", [(5, True), (4, False)])
def test_how_many_steps_it_takes(trained, count, finds):
    assert bool(trained(net("no_backward", count)).findings(NoGradient())) == finds


def test_a_layer_that_has_its_first_gradient_later(trained):
    def training(capture):
        model = Net("detached")
        capture(model)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        steps(model, optimizer, 8)
        model.how = ""
        steps(model, optimizer, 2)

    assert trained(training).findings(NoGradient()) == []


def test_what_is_frozen_or_in_no_optimizer(trained):
    def training(capture):
        model = Net("detached")
        model.encoder.requires_grad_(False)
        capture(model)
        steps(model, torch.optim.AdamW([*model.encoder.parameters(), *model.inner.parameters()], 1e-2), 8)

    assert trained(training).findings(NoGradient()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(NoGradient()))} == {}
