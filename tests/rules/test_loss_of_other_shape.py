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


def of_differences(function):
    return lambda prediction, target: function(prediction - target)


def cross_entropy(prediction, target):
    p, y = prediction.sigmoid(), target.sigmoid()
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()


OWN_LOSSES = {
    "squares": of_differences(lambda d: (d**2).mean()),
    "squares, summed": of_differences(lambda d: (d * d).sum() / SIZE),
    "root of squares": of_differences(lambda d: d.square().mean().sqrt()),
    "absolute": lambda prediction, target: (target - prediction).abs().mean(),
    "norm": of_differences(torch.linalg.norm),
    "by rows": of_differences(lambda d: (d**2).mean(1).mean()),
    "log cosh": of_differences(lambda d: d.cosh().log().mean()),
    "Huber's": of_differences(lambda d: torch.where(d.abs() < 1, d**2 / 2, d.abs() - 0.5).mean()),
    "of a quantile": of_differences(lambda d: torch.maximum(0.9 * d, -0.1 * d).mean()),
    "in half precision": of_differences(lambda d: (d.bfloat16() ** 2).mean()),
    "with a penalty": lambda prediction, target: ((prediction - target) ** 2).mean() + prediction.square().mean() / 100,
    "cross entropy": cross_entropy,
    "policy gradient": lambda prediction, target: -(functional.logsigmoid(prediction) * target).mean(),
    "hinge": lambda prediction, target: functional.relu(1 - prediction * target).mean(),
    "logistic": lambda prediction, target: functional.softplus(-prediction * target).mean(),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", OWN_LOSSES)
def test_a_loss_of_its_own(trained, name):
    loss = OWN_LOSSES[name]
    (found,) = trained(training_of(loss, lambda: torch.randn(SIZE))).findings(LossOfOtherShape())
    assert (found.severity, found.first_step, found.steps) == (Severity.PROBLEM, 1, 2)
    assert found.tensor == "usage/loss/own_loss_0/input_repeated"
    assert found.evidence == {"input_repeated": SIZE, "target_repeated": SIZE}
    assert "works out itself" in found.cause
    # A row of predictions and a column of targets.
    turned = training_of(loss, lambda: torch.randn(SIZE, 1), shape=lambda y: y.squeeze(1))
    assert len(trained(turned).findings(LossOfOtherShape())) == 1
    for target, shape in ((lambda: torch.randn(SIZE, 1), lambda y: y), (lambda: torch.randn(SIZE), lambda y: y[:, 0])):
        if name != "by rows":
            assert trained(training_of(loss, target, shape=shape)).findings(LossOfOtherShape()) == []


PAIRS = {
    "a target for each pair": lambda prediction, target: ((prediction - target[:, None] * target.sin()) ** 2).mean(),
    "a slope for each row": lambda prediction, target: ((prediction * target - torch.randn(SIZE, SIZE)) ** 2).mean(),
    "pairs of predictions": lambda prediction, target: (prediction - prediction.T).square().mean(),
    "energy distance": lambda prediction, target: (
        2 * (prediction - target).abs().mean() - (prediction - prediction.T).abs().mean()
    ),
    "energy distance by cdist": lambda prediction, target: (
        2 * (prediction - target).abs().mean() - torch.cdist(prediction, prediction).mean()
    ),
    "a kernel": lambda prediction, target: (-((prediction - target) ** 2)).exp().mean(),
    "repelled by itself": lambda prediction, target: -(prediction - prediction.detach().T).square().mean(),
    "the nearest": lambda prediction, target: (prediction - target).square().amin(1).mean(),
    "weighted by the pair": lambda prediction, target: ((prediction - target) ** 2 * target.outer(target)).mean(),
    "chosen": lambda prediction, target: (prediction - target).square()[torch.eye(SIZE) > 0].mean(),
    "chosen by where": lambda prediction, target: torch.where(
        torch.eye(SIZE) > 0, (prediction - target) ** 2, 0.0
    ).mean(),
    "a softmax over pairs": lambda prediction, target: -(prediction * target).log_softmax(1).diagonal().mean(),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_that_are_meant(trained, name):
    run = trained(training_of(PAIRS[name], lambda: torch.randn(SIZE), count=4))
    assert run.verdict(LossOfOtherShape()).findings == []


def test_a_template_of_as_many_numbers_as_there_are_rows(trained):
    def of_rows(capture):
        model = nn.Linear(1, SIZE)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(4):
            optimizer.zero_grad()
            ((torch.randn(SIZE, SIZE) - model(torch.ones(1))) ** 2).mean().backward()
            optimizer.step()

    assert trained(of_rows).findings(LossOfOtherShape()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(LossOfOtherShape()).findings)} == {}
