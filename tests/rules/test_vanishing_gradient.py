"""VanishingGradient, on a deep net of sigmoids, and as smdebug documents it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.errors import NoMoreData
from smd_agent.rules import VanishingGradient, invoke_rule
from smd_agent.rules.finding import Severity


def deep(kind, layers=14):
    def training(capture):
        model = nn.Sequential(*(part for _ in range(layers) for part in (nn.Linear(12, 12), kind())), nn.Linear(12, 4))
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(10):
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(16, 12)), torch.randint(0, 4, (16,))).backward()
            optimizer.step()

    return training


def test_a_deep_net_of_sigmoids(trained):
    run = trained(deep(nn.Sigmoid))
    found = run.findings(VanishingGradient(lost=1e-30))
    assert {one.severity for one in found} == {Severity.WARNING}
    trial = run.trial()
    sizes = {
        name: float(trial.tensor(name).reduction_value(9, "mean", abs=True))
        for name in trial.tensor_names(regex="^gradient/.*weight")
    }
    usual = np.percentile([*sizes.values()], 75)
    expected = {name for name, size in sizes.items() if size < 1e-6 * usual}
    assert {one.tensor for one in found} == expected
    assert {"gradient/Sequential_0.weight", "gradient/Sequential_2.weight"} <= expected
    (first,) = (one for one in found if one.tensor == "gradient/Sequential_0.weight")
    assert (first.first_step, first.last_step, first.steps) == (4, 9, 6)
    assert first.evidence["ratio"] == pytest.approx(first.evidence["abs_mean"] / first.evidence["usual"])


def ten_layers(rate, dtype=torch.float32):
    """Ten layers of sigmoids, whose smallest gradients are above the ratio."""

    def training(capture):
        layers = [part for _ in range(10) for part in (nn.Linear(64, 64), nn.Sigmoid())]
        model = nn.Sequential(*layers, nn.Linear(64, 2)).to(dtype)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), rate)
        for _ in range(8):
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(16, 64, dtype=dtype)), torch.randint(0, 2, (16,))).backward()
            optimizer.step()

    return training


def test_gradients_whose_updates_are_lost_in_rounding(trained):
    run = trained(ten_layers(0.1))
    trial = run.trial()

    def is_lost(name):
        ratios = trial.tensor(name.replace("gradient/", "update_ratio/")).values()
        return any(all(ratios[step] < 1e-8 for step in range(first, first + 5)) for first in range(4))

    found = {one.tensor: one for one in run.findings(VanishingGradient())}
    lost = {name for name in trial.tensor_names(regex="^gradient/.*weight") if is_lost(name)}
    assert {"gradient/Sequential_0.weight", "gradient/Sequential_2.weight"} <= found.keys() == lost
    one = found["gradient/Sequential_2.weight"]
    assert one.evidence["ratio"] > 1e-6
    assert one.evidence["update_ratio"] == trial.tensor("update_ratio/Sequential_2.weight").value(one.first_step)
    assert (one.first_step, one.last_step) == (4, 7)
    assert run.findings(VanishingGradient(lost=1e-30)) == []


def test_a_rate_that_is_tiny_for_all_is_not_this(trained):
    # In float32 most of these updates would be 0, which is NotMoving's.
    assert trained(ten_layers(1e-6, torch.float64)).findings(VanishingGradient(ratio=1e-12)) == []


@pytest.mark.parametrize("name, finds", [("bias", []), ("bias_weight", ["gradient/Net_bias_weight"])])
def test_biases_are_left_out_whatever_their_shape(trained, name, finds):
    """Keras's attention has biases of two dimensions, and those of its keys have no gradient but rounding."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 1)
            self.register_parameter(name, nn.Parameter(torch.zeros(2, 3)))

        def forward(self, x):
            own = self.get_parameter(name).flatten()
            return self.c(torch.tanh(self.b(torch.tanh(self.a(x) + 1e-9 * own))))

    def training(capture):
        model = Net()
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(10):
            optimizer.zero_grad()
            (model(torch.randn(16, 6)) - 1).square().mean().backward()
            optimizer.step()

    assert [one.tensor for one in trained(training).findings(VanishingGradient())] == finds


@pytest.mark.parametrize("kind, layers", [(nn.ReLU, 6), (nn.Tanh, 8), (nn.Sigmoid, 3)])
def test_nets_that_can_be_trained(trained, kind, layers):
    assert trained(deep(kind, layers)).findings(VanishingGradient()) == []


def test_so_many_steps_in_a_row(trained):
    run = trained(deep(nn.Sigmoid))
    assert run.findings(VanishingGradient(patience=10))
    assert run.findings(VanishingGradient(patience=11)) == []


def test_as_it_is_documented(trained):
    run = trained(deep(nn.Sigmoid, 6))
    trial = run.trial()
    names = trial.tensor_names(collection="gradients")
    smallest = {
        step: min(float(trial.tensor(name).reduction_value(step, "mean", abs=True)) for name in names)
        for step in trial.steps()
    }
    for threshold in (None, sorted(smallest.values())[4], "1e-30"):
        limit = 1e-7 if threshold is None else float(threshold)
        arguments = {} if threshold is None else {"threshold": threshold}
        rule, met = VanishingGradient(base_trial=trial, **arguments), []
        for step in trial.steps():
            met.extend([step] * rule.invoke_at_step(step))
        assert met == [step for step, size in smallest.items() if size < limit]
    with pytest.raises(NoMoreData):
        invoke_rule(VanishingGradient(base_trial=trial))


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(VanishingGradient()))} == {}
