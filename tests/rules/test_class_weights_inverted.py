"""ClassWeightsInverted, on classifiers whose losses weigh their classes in all ways."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import ClassWeightsInverted
from smd_agent.rules.finding import Severity

SHARES = torch.tensor([0.7, 0.2, 0.1])


def training_of(loss_of, outputs, count=8):
    def training(capture):
        net = nn.Linear(5, outputs)
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(count):
            optimizer.zero_grad()
            loss_of(net(torch.randn(64, 5))).backward()
            optimizer.step()

    return training


def of_classes(weight):
    def loss_of(logits):
        labels = torch.multinomial(SHARES, len(logits), replacement=True)
        return functional.cross_entropy(logits, labels, weight=weight)

    return training_of(loss_of, len(SHARES))


def of_yes_and_no(pos_weight, shares=(0.1,)):
    def loss_of(logits):
        labels = (torch.rand_like(logits) < torch.tensor(shares)).float()
        return functional.binary_cross_entropy_with_logits(logits, labels, pos_weight=pos_weight)

    return training_of(loss_of, len(shares))


def test_weights_as_the_labels_are(trained):
    (found,) = trained(of_classes(SHARES * 3)).findings(ClassWeightsInverted())
    assert found.tensor == "usage/loss/cross_entropy_loss_0/rare_weight"
    assert found.evidence["rare_weight"] == pytest.approx(-1, abs=0.2)
    assert 4 < found.evidence["imbalance"] < 12
    assert found.severity is Severity.WARNING


def test_a_weight_of_yes_the_wrong_way_round(trained):
    (found,) = trained(of_yes_and_no(torch.tensor(0.1 / 0.9))).findings(ClassWeightsInverted())
    assert found.evidence["rare_weight"] == pytest.approx(-1, abs=0.2)
    assert "pos_weight" in found.cause


def test_weights_of_columns_the_wrong_way_round(trained):
    shares = torch.tensor([0.1, 0.3])
    run = trained(of_yes_and_no(shares / (1 - shares), shares.tolist()))
    (found,) = run.findings(ClassWeightsInverted())
    assert found.evidence["rare_weight"] == pytest.approx(-1, abs=0.2)


RIGHT = {
    "balanced": of_classes(1 / SHARES),
    "by the root": of_classes(SHARES.rsqrt()),
    "all alike": of_classes(torch.ones(3)),
    "one is left out": of_classes(torch.tensor([0.0, 1.0, 2.0])),
    "of yes": of_yes_and_no(torch.tensor(9.0)),
    "of yes, one column": of_yes_and_no(torch.tensor([9.0])),
    "of columns": of_yes_and_no(torch.tensor([9.0, 0.3]), (0.1, 0.8)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_weights_that_help_rare_classes(trained, name):
    assert trained(RIGHT[name]).findings(ClassWeightsInverted()) == []


def test_labels_that_are_about_as_frequent(trained):
    """Where no class is rare a weight tells what the program wants."""
    assert trained(of_yes_and_no(torch.tensor(0.5), (0.45,))).findings(ClassWeightsInverted()) == []


def test_as_much_as_it_takes(trained):
    run = trained(of_classes(SHARES * 3))
    assert run.findings(ClassWeightsInverted(imbalance=20.0)) == []
    assert run.findings(ClassWeightsInverted(power=-1.5)) == []
    assert run.findings(ClassWeightsInverted(patience=9)) == []


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(ClassWeightsInverted()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
