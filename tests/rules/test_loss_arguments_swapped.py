"""LossArgumentsSwapped, on losses with prediction and target in each other's place, and on those that are meant."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import LossArgumentsSwapped
from smd_agent.rules.finding import Severity

ROWS = 16


def yes_or_no():
    return (torch.rand(ROWS, 3) > 0.5).float()


def smoothed():
    """With labels of 0 and 1 the gradient is infinite."""
    return 0.8 * yes_or_no() + 0.1


def shares():
    return torch.rand(ROWS, 3).softmax(1)


def training_of(loss_of, count=4):
    """A training with a loss of a model's output of three numbers."""

    def training(capture):
        model = nn.Linear(6, 3)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(count):
            optimizer.zero_grad()
            loss_of(model(torch.randn(ROWS, 6))).backward()
            optimizer.step()

    return training


FAULTS = {
    "binary": lambda out: functional.binary_cross_entropy(smoothed(), out.sigmoid()),
    "binary, by a module and name": lambda out: nn.BCELoss()(target=out.sigmoid(), input=smoothed()),
    "logits": lambda out: nn.BCEWithLogitsLoss()(yes_or_no(), out),
    "one-hot classes": lambda out: functional.cross_entropy(yes_or_no(), out.softmax(1)),
    "soft classes": lambda out: nn.CrossEntropyLoss()(shares(), out.softmax(1)),
    "counts": lambda out: nn.PoissonNLLLoss(log_input=False)(torch.randint(1, 5, (ROWS, 3)).float(), out.exp()),
    "with a penalty": lambda out: nn.BCELoss()(smoothed(), out.sigmoid()) + 0.01 * out.square().mean(),
    "beside one of numbers": lambda out: nn.BCELoss()(smoothed(), out.sigmoid()) + functional.mse_loss(out, shares()),
}


@pytest.mark.parametrize("name", FAULTS)
def test_swapped(trained, name):
    (found,) = trained(training_of(FAULTS[name])).findings(LossArgumentsSwapped())
    assert found.severity is Severity.PROBLEM
    assert found.evidence == {"swapped": 1}
    assert (found.first_step, found.steps) == (1, 3)
    assert found.in_short(found.tensor) == "prediction and target swapped"


TEACHER = nn.Linear(3, 3)
HEALTHY = {
    "binary": lambda out: functional.binary_cross_entropy(out.sigmoid(), yes_or_no()),
    "classes": lambda out: functional.cross_entropy(out, torch.randint(3, (ROWS,))),
    "soft classes": lambda out: functional.cross_entropy(out, shares()),
    "errors": lambda out: functional.mse_loss(shares(), out) + functional.l1_loss(shares(), out),
    "distances": lambda out: functional.huber_loss(shares(), out) + functional.smooth_l1_loss(shares(), out),
    "a reverse divergence": lambda out: functional.kl_div(shares().log(), out.softmax(1), reduction="batchmean"),
    "a teacher that learns too": lambda out: functional.cross_entropy(TEACHER(shares()), out.softmax(1)),
    "two that teach each other": lambda out: (
        functional.cross_entropy(out, TEACHER(shares()).softmax(1).detach())
        + functional.cross_entropy(TEACHER(shares()), out.softmax(1).detach())
    ),
    "a symmetric cross entropy": lambda out: (
        functional.cross_entropy(out, shares()) + 0.1 * functional.cross_entropy(shares().log(), out.softmax(1))
    ),
    "a symmetric cross entropy of numbered classes": lambda out: (
        functional.cross_entropy(out, torch.randint(3, (ROWS,)))
        + 0.1 * functional.binary_cross_entropy(smoothed(), out.sigmoid())
    ),
    "one that is only printed": lambda out: (
        functional.binary_cross_entropy(out.sigmoid().detach(), yes_or_no()) + out.square().mean()
    ),
    "its own answers": lambda out: functional.binary_cross_entropy(out.sigmoid(), (out > 0).float()),
    "inputs that are attacked": lambda out: functional.binary_cross_entropy(
        TEACHER(shares().requires_grad_()).sigmoid() * out.sigmoid(), yes_or_no()
    ),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_meant(trained, name):
    assert trained(training_of(HEALTHY[name])).verdict(LossArgumentsSwapped()).findings == []


@pytest.mark.parametrize("count, findings", [(1, 0), (2, 1)])
def test_one_step_less_than_it_takes(trained, count, findings):
    verdict = trained(training_of(FAULTS["binary"], count)).verdict(LossArgumentsSwapped())
    assert len(verdict.findings) == findings


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(LossArgumentsSwapped()).findings)} == {}
