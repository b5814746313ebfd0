"""LossExploding, on trainings with rates that are too high, and at its threshold."""

from __future__ import annotations

import torch
from harness.rule_runs import verdict, written
from torch import nn
from torch.nn import functional

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import LossExploding
from smd_agent.rules.finding import Severity


def training(capture, rate, sign=1.0):
    model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
    capture(model)
    optimizer = torch.optim.SGD(model.parameters(), rate)
    for _ in range(20):
        x = torch.randn(16, 6)
        optimizer.zero_grad()
        (sign * functional.mse_loss(model(x), x[:, :1])).backward()
        optimizer.step()


def test_a_rate_that_is_much_too_high(trained):
    (found,) = trained(lambda capture: training(capture, 3.0), every=3).findings(LossExploding())
    assert found.severity is Severity.PROBLEM
    assert found.tensor == "Loss_output_0"
    assert found.evidence["loss"] >= 1e8 > found.evidence["first"]


def test_a_training_that_goes_well(trained):
    assert trained(lambda capture: training(capture, 0.05)).findings(LossExploding()) == []


def losses(folder, *values, mode=ModeKeys.TRAIN):
    return verdict(written(folder, [{"loss": value} for value in values], mode), LossExploding())


def test_the_threshold_is_counted_from_the_first_loss_or_from_1(tmp_path):
    assert losses(tmp_path / "a", 2.0, 1.99e8).findings == []
    (found,) = losses(tmp_path / "b", 2.0, 1.0, 2e8).findings
    assert (found.first_step, found.evidence) == (2, {"first": 2.0, "loss": 2e8})
    assert losses(tmp_path / "c", 0.0, 0.99e8).findings == []
    assert len(losses(tmp_path / "d", 0.0, -1e8).findings) == 1


def test_one_that_comes_down_again_is_a_warning(tmp_path):
    (found,) = losses(tmp_path / "a", 1.0, 1e9, 1.0).findings
    assert found.severity is Severity.WARNING
    (found,) = losses(tmp_path / "b", 1.0, 1e9, 1.0, 1e9).findings
    assert found.severity is Severity.PROBLEM


def test_evaluation_and_losses_that_are_not_finite_are_no_matter_of_it(tmp_path):
    assert losses(tmp_path / "a", 1.0, 1e9, mode=ModeKeys.EVAL).findings == []
    assert losses(tmp_path / "b", 1.0, float("inf"), float("nan")).findings == []
