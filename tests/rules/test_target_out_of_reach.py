"""TargetOutOfReach, on activations that do not fit the targets of a loss of numbers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import TargetOutOfReach
from smd_agent.rules.finding import Severity

FAR, NEAR = 16.0, 1.2


def training_of(last, target, loss=functional.mse_loss, count=4, shape=lambda y: y):
    """Train with targets of shape (16, 4), and an activation as the last layer."""

    def training(capture):
        model = nn.Sequential(nn.Linear(6, 4), last)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        for _ in range(count):
            optimizer.zero_grad()
            loss(shape(model(torch.randn(16, 6))), shape(target())).backward()
            optimizer.step()

    return training


def some_at(value, some=64, rest=0.5):
    """Targets of which so many have a value."""

    def target():
        flat = torch.full((64,), rest)
        flat[:some] = value
        return flat.reshape(16, 4)

    return target


@pytest.mark.parametrize(
    "last, value, ends",
    [
        (nn.Sigmoid(), FAR, {"reach_min": 0, "reach_max": 1}),
        (nn.Softmax(1), FAR, {"reach_min": 0, "reach_max": 1}),
        (nn.Tanh(), -FAR, {"reach_min": -1, "reach_max": 1}),
        (nn.ReLU6(), FAR, {"reach_min": 0, "reach_max": 6}),
        (nn.ReLU(), -FAR, {"reach_min": 0}),
        (nn.Softplus(), -FAR, {"reach_min": 0}),
        (nn.LogSigmoid(), FAR, {"reach_max": 0}),
    ],
)
def test_targets_far_beyond_an_activation(trained, last, value, ends):
    (found,) = trained(training_of(last, some_at(value, 16))).findings(TargetOutOfReach())
    assert found.severity is Severity.PROBLEM
    assert (found.first_step, found.last_step, found.steps) == (2, 3, 2)
    expected = 0.25 if not isinstance(last, nn.LogSigmoid) else 1
    assert found.evidence.pop("out_of_reach") == pytest.approx(expected)
    assert found.evidence == {"target_min": min(value, 0.5), "target_max": max(value, 0.5), **ends}


@pytest.mark.parametrize(
    "loss", [functional.l1_loss, nn.SmoothL1Loss(), nn.HuberLoss(), lambda y, t: nn.MSELoss()(t, y)]
)
def test_all_losses_of_numbers_in_either_order(trained, loss):
    assert len(trained(training_of(nn.Sigmoid(), some_at(FAR), loss)).findings(TargetOutOfReach())) == 1


SHAPES = {
    "flat": lambda y: y.reshape(-1),
    "a part": lambda y: y[:, 1:3],
    "another dtype": lambda y: y.unsqueeze(1).double(),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_behind_what_leaves_values_as_they_are(trained, shape):
    training = training_of(nn.Sigmoid(), some_at(FAR), shape=SHAPES[shape])
    assert len(trained(training).findings(TargetOutOfReach())) == 1


def test_targets_slightly_beyond_may_be_meant(trained):
    (found,) = trained(training_of(nn.Sigmoid(), some_at(NEAR))).findings(TargetOutOfReach())
    assert found.severity is Severity.WARNING
    # Half of the range is the threshold.
    for value, severity in ((1.49, Severity.WARNING), (1.51, Severity.PROBLEM)):
        (found,) = trained(training_of(nn.Sigmoid(), some_at(value, 32))).findings(TargetOutOfReach())
        assert found.severity is severity
    for value, severity in ((-0.24, Severity.WARNING), (-0.26, Severity.PROBLEM)):
        (found,) = trained(training_of(nn.ReLU(), some_at(value, 32))).findings(TargetOutOfReach())
        assert found.severity is severity


@pytest.mark.parametrize("some, findings", [(3, 0), (4, 1)])
def test_a_few_targets_are_left_alone(trained, some, findings):
    run = trained(training_of(nn.Sigmoid(), some_at(FAR, some)))
    assert len(run.findings(TargetOutOfReach())) == findings


def test_one_step_less_than_it_takes(trained):
    run = trained(training_of(nn.Sigmoid(), some_at(FAR), count=2))
    assert run.verdict(TargetOutOfReach()).findings == []


@pytest.mark.parametrize(
    "last, target",
    [
        (nn.Sigmoid(), some_at(1.0, rest=0.0)),
        (nn.Sigmoid(), some_at(1.0 + 5e-4, rest=-5e-4)),
        (nn.Tanh(), some_at(-1.0, rest=1.0)),
        (nn.ReLU(), some_at(1e6)),
        (nn.Hardtanh(0.0, FAR), some_at(FAR)),
        (nn.LogSoftmax(1), some_at(-FAR, rest=-math.pi)),
    ],
)
def test_targets_within_reach(trained, last, target):
    assert trained(training_of(last, target)).findings(TargetOutOfReach()) == []


@pytest.mark.parametrize("last", [nn.Identity(), nn.LeakyReLU(), nn.Sequential(nn.Sigmoid(), nn.Linear(4, 4))])
def test_what_bounds_nothing(trained, last):
    verdict = trained(training_of(last, some_at(-FAR))).verdict(TargetOutOfReach())
    assert (verdict.findings, verdict.not_for_it) == ([], ["TargetOutOfReach"])


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(TargetOutOfReach()).findings)} == {}
