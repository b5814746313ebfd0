"""TargetInInput, on models that are given what they are to predict, and on others that learn without that."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import TargetInInput
from smd_agent.rules.finding import Severity

ROWS, COLUMNS = 32, 5


def training_of(make, loss_of=functional.mse_loss, outputs=1, count=5, net=None):
    """A training; ``make`` gives the input and the target of a batch."""

    def training(capture):
        model = net() if net is not None else nn.Sequential(nn.Flatten(), nn.LazyLinear(outputs))
        model(make()[0])
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(count):
            optimizer.zero_grad()
            x, y = make()
            loss_of(model(x), y).backward()
            optimizer.step()

    return training


def table():
    x = torch.randn(ROWS, COLUMNS)
    return x, x[:, 3:4].clone()


def scaled():
    """As the target is in a table that was standardised with it."""
    x, y = table()
    x[:, 3] = (y[:, 0] - 0.3) / 1.7
    return x, y


def labels():
    x, _ = table()
    y = torch.randint(0, 3, (ROWS,))
    x[:, 3] = y
    return x, y


def window():
    """A window that ends with what is to be predicted."""
    x = torch.randn(ROWS, COLUMNS, 1).cumsum(1)
    return x, x[:, -1]


@pytest.mark.parametrize("make, column", [(table, 3), (scaled, 3), (window, COLUMNS - 1)])
def test_a_target_that_is_a_column(trained, make, column):
    (found,) = trained(training_of(make)).findings(TargetInInput())
    assert found.tensor == "usage/target/mse_loss_0/copy_error"
    assert found.evidence == {"column": column, "columns": COLUMNS}
    assert found.severity is Severity.WARNING


def test_labels_that_are_a_column(trained):
    (found,) = trained(training_of(labels, functional.cross_entropy, 3)).findings(TargetInInput())
    assert found.evidence["column"] == 3


def near():
    x, y = table()
    return x, y + 1e-3 * torch.randn_like(y)


def one_column():
    """As of a line that is fitted."""
    x = torch.randn(ROWS, 1)
    return x, 3 * x + 2


def sums():
    x = torch.randn(ROWS, COLUMNS)
    return x, x.sum(1, True)


def another_each_time():
    x = torch.randn(ROWS, COLUMNS)
    at = int(torch.randint(0, COLUMNS, ()))
    return x, x[:, at : at + 1].clone()


def constant():
    x = torch.randn(ROWS, COLUMNS)
    x[:, 0] = 1
    return x, torch.ones(ROWS, 1)


def few_rows():
    x = torch.randn(8, COLUMNS)
    return x, x[:, :1].clone()


@pytest.mark.parametrize("make", [near, one_column, sums, constant, few_rows])
def test_targets_that_are_no_column(trained, make):
    assert trained(training_of(make)).verdict(TargetInInput()).findings == []


def test_a_column_that_is_another_one_at_each_step(trained):
    torch.manual_seed(3)
    assert trained(training_of(another_each_time)).findings(TargetInInput(patience=5)) == []


def test_what_an_autoencoder_is_given_back(trained):
    def make():
        x = torch.randn(ROWS, COLUMNS)
        return x, x

    assert trained(training_of(make, outputs=COLUMNS)).verdict(TargetInInput()).findings == []


def test_as_much_as_it_takes(trained):
    run = trained(training_of(near))
    (found,) = run.findings(TargetInInput(error=1e-4))
    assert found.steps == 3
    assert trained(training_of(table, count=3)).findings(TargetInInput(patience=4)) == []


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(TargetInInput()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
