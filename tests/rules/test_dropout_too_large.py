"""DropoutTooLarge, on networks with dropout of several shares."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import DropoutTooLarge
from smd_agent.rules.finding import Severity


def training_of(*layers, mode=True, steps=3):
    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), *layers, nn.Linear(8, 4)).train(mode)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(steps):
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 4, (16,))).backward()
            optimizer.step()

    return training


def test_a_share_to_keep_that_is_dropped(trained):
    (found,) = trained(training_of(nn.Dropout(0.1), nn.Dropout(0.9))).findings(DropoutTooLarge())
    assert (found.severity, found.tensor) == (Severity.WARNING, "usage/model/Sequential/dropped")
    assert (found.first_step, found.last_step, found.steps) == (1, 2, 2)
    assert found.evidence == {"dropped": pytest.approx(0.9)}
    assert "p is the share that is dropped" in found.cause


@pytest.mark.parametrize("share, is_found", [(0.8, True), (0.79, False)])
def test_the_threshold(trained, share, is_found):
    assert bool(trained(training_of(nn.Dropout(share))).findings(DropoutTooLarge())) == is_found


def test_what_drops_nothing(trained):
    assert trained(training_of(nn.Dropout(0.9), mode=False)).findings(DropoutTooLarge()) == []
    assert trained(training_of(nn.Dropout(0.9), steps=1)).verdict(DropoutTooLarge()).findings == []
    assert trained(training_of(nn.ReLU())).verdict(DropoutTooLarge()).not_for_it == ["DropoutTooLarge"]


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(DropoutTooLarge()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
