"""NotMoving, on weights whose updates are lost, and on those that rightly stay."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from smd_agent.rules import NotMoving


def steps(capture, model, optimizer, dtype=torch.float32, count=10, after=None):
    capture(model)
    for step in range(count):
        optimizer.zero_grad()
        model(torch.randn(16, 6, dtype=dtype)).pow(2).mean().backward()
        optimizer.step()
        if after is not None:
            after(step)


def test_updates_that_are_lost_in_bfloat16(trained):
    def lost(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1)).to(torch.bfloat16)
        steps(capture, model, torch.optim.SGD(model.parameters(), 1e-6), torch.bfloat16)

    found = trained(lost).findings(NotMoving())
    assert {"Sequential_0.weight", "Sequential_1.weight"} <= {one.tensor for one in found}
    assert {(one.first_step, one.last_step) for one in found} == {(4, 9)}
    assert all(one.evidence["learning_rate"] == pytest.approx(1e-6) for one in found)
    assert all(one.evidence["gradient"] > 1e-3 * one.evidence["usual_gradient"] > 0 for one in found)


def test_a_rate_that_is_lost_in_float32(trained):
    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
        groups = [{"params": [model[0].weight], "lr": 1e-14}, {"params": [model[0].bias, *model[1].parameters()]}]
        steps(capture, model, torch.optim.SGD(groups, 0.1))

    (found,) = trained(training).findings(NotMoving())
    assert found.tensor == "Sequential_0.weight"
    assert found.evidence["learning_rate"] == pytest.approx(1e-14)


def test_a_rate_that_has_vanished_is_another_rules(trained):
    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def after(step):
            optimizer.param_groups[0]["lr"] *= 1e-4

        steps(capture, model, optimizer, after=after, count=12)

    assert trained(training).findings(NotMoving()) == []


def test_it_takes_some_steps_in_a_row(trained):
    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1)).to(torch.bfloat16)
        optimizer = torch.optim.SGD(model.parameters(), 1e-6)

        def after(step):
            optimizer.param_groups[0]["lr"] = 0.1 if step == 4 else 1e-6

        steps(capture, model, optimizer, torch.bfloat16, after=after)

    run = trained(training)
    moved = [one for one in run.findings(NotMoving()) if one.first_step != 4]
    assert moved == []
    assert run.findings(NotMoving(patience=6)) == []


def test_a_rate_of_0_is_no_lost_update(trained):
    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
        groups = [{"params": model[0].parameters(), "lr": 0.0}, {"params": model[1].parameters()}]
        steps(capture, model, torch.optim.SGD(groups, 0.1))

    assert trained(training).findings(NotMoving()) == []


@pytest.mark.parametrize("always", [True, False])
def test_gradients_that_are_taken_away_before_the_update(trained, always):
    """As those of a last layer that is left alone at first."""

    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for step in range(12):
            optimizer.zero_grad()
            model(torch.randn(16, 6)).pow(2).mean().backward()
            if always or step > 4:
                model[1].weight.grad = None
            optimizer.step()

    assert trained(training).findings(NotMoving()) == []


def test_a_training_that_has_converged_moves_nothing(trained):
    def training(capture):
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        capture(model)
        x = torch.randn(32, 3)
        y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 3
        for _ in range(400):
            optimizer.zero_grad()
            (model(x) - y).pow(2).mean().backward()
            optimizer.step()

    assert trained(training).findings(NotMoving()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(NotMoving()))} == {}
