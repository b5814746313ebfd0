"""LearningRateZero, on schedules that end too early or never begin."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from smd_agent.rules import LearningRateZero
from smd_agent.rules.finding import Severity


def scheduled(rate, groups=1):
    """Train with a learning rate that is a function of the step."""

    def training(capture):
        layers = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
        capture(layers)
        parts = [layers.parameters()] if groups == 1 else [layer.parameters() for layer in layers]
        optimizer = torch.optim.SGD([{"params": part} for part in parts], 0.1)
        for step in range(20):
            optimizer.param_groups[0]["lr"] = rate(step)
            optimizer.zero_grad()
            layers(torch.randn(16, 6)).pow(2).mean().backward()
            optimizer.step()

    return training


def test_a_decay_that_ends_too_early(trained):
    (found,) = trained(scheduled(lambda step: max(0.1 - step / 100, 0.0))).findings(LearningRateZero())
    assert found.severity is Severity.PROBLEM
    assert found.tensor == "optimizer/SGD/lr"
    assert (found.first_step, found.last_step, found.steps) == (10, 19, 10)
    assert found.evidence == {"groups": 1, "groups_at_zero": 1, "last_learning_rate": pytest.approx(0.01)}


def test_a_warm_up_that_never_begins(trained):
    (found,) = trained(scheduled(lambda step: 0.0)).findings(LearningRateZero())
    assert "last_learning_rate" not in found.evidence
    assert (found.first_step, found.steps) == (0, 20)


@pytest.mark.parametrize("zeros", [0, 1, 4])
def test_it_takes_some_steps_in_a_row(trained, zeros):
    assert trained(scheduled(lambda step: 0.1 if step < 20 - zeros else 0.0)).findings(LearningRateZero()) == []


def test_one_group_of_two_is_a_note(trained):
    (found,) = trained(scheduled(lambda step: 0.0, groups=2)).findings(LearningRateZero())
    assert found.severity is Severity.NOTE
    assert found.tensor == "optimizer/SGD/group_0/lr"


def test_clean_trainings_have_no_problem(clean):
    found = {name: run.findings(LearningRateZero()) for name, run in clean.items()}
    assert {name for name, ones in found.items() if ones} == {"frozen_by_a_rate_of_0"}
    assert {one.severity for ones in found.values() for one in ones} == {Severity.NOTE}
