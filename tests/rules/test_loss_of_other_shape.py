"""LossOfOtherShape, on predictions and targets that are broadcast against each other."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import LossOfOtherShape
from smd_agent.rules.finding import Severity

SIZE = 8


def training_of(loss, target, count=3, shape=lambda y: y):
    def training(capture):
        model = nn.Linear(6, 1)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(count):
            optimizer.zero_grad()
            loss(shape(model(torch.randn(SIZE, 6))), target()).backward()
            optimizer.step()

    return training


LOSSES = [nn.MSELoss(), functional.mse_loss, nn.L1Loss(), functional.smooth_l1_loss]


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_column_against_a_row(trained, loss):
    (found,) = trained(training_of(loss, lambda: torch.randn(SIZE))).findings(LossOfOtherShape())
    assert (found.severity, found.first_step, found.steps) == (Severity.PROBLEM, 1, 2)
    assert found.evidence == {"input_repeated": SIZE, "target_repeated": SIZE}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_shape_and_one_for_all(trained, loss):
    for target in (torch.randn(SIZE, 1), torch.zeros(()), torch.zeros(1), torch.ones(1).expand(SIZE, 1)):
        run = trained(training_of(loss, lambda target=target: target))
        assert run.findings(LossOfOtherShape()) == []
    rows = training_of(loss, lambda: torch.randn(SIZE), shape=lambda y: y.squeeze(1))
    one = training_of(loss, lambda: torch.randn(SIZE), shape=lambda y: y.mean())
    for training in (rows, one):
        assert trained(training).findings(LossOfOtherShape()) == []


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_one_step_less_than_it_takes(trained):
    run = trained(training_of(nn.MSELoss(), lambda: torch.randn(SIZE), count=2))
    assert len(run.findings(LossOfOtherShape())) == 1
    assert run.findings(LossOfOtherShape(patience=3)) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(LossOfOtherShape()).findings)} == {}
