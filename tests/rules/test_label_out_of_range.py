"""LabelOutOfRange, on labels for which a model has no output."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import smd_agent.pytorch as smd
from smd_agent.rules import LabelOutOfRange
from smd_agent.rules.finding import Severity

LOSS = "loss/SoftmaxCrossEntropyLoss_0"


def of(written, least, most, classes=4, mode=smd.modes.TRAIN, **more):
    run = written(usage="^usage/")
    for _ in range(2):
        numbers = {"classes": classes, "labels": 16, "label_min": least, "label_max": most, **more}
        run.step(mode, **{f"usage/{LOSS}/{name}": value for name, value in numbers.items()})
    return run.ended()


@pytest.mark.parametrize("mode", [smd.modes.TRAIN, smd.modes.EVAL])
def test_labels_that_begin_with_1(written, mode):
    (found,) = of(written, 1, 4, mode=mode).findings(LabelOutOfRange())
    assert (found.severity, found.mode, found.first_step, found.steps) == (Severity.PROBLEM, mode, 0, 2)
    assert found.evidence == {"classes": 4, "label_min": 1, "label_max": 4}
    assert "begin with 1" in found.cause


def test_labels_above_the_last_class(written):
    for least, most in ((0, 4), (1, 5), (-1, 255)):
        (found,) = of(written, least, most).findings(LabelOutOfRange())
        assert (found.severity, found.tensor) == (Severity.PROBLEM, f"usage/{LOSS}/label_max")
        assert "too few outputs" in found.cause


def test_labels_below_0_may_be_taken_out_afterwards(written):
    (found,) = of(written, -1, 3).findings(LabelOutOfRange())
    assert (found.severity, found.tensor) == (Severity.WARNING, f"usage/{LOSS}/label_min")
    assert "below 0" in found.cause


def test_labels_within_the_range(written):
    assert of(written, 0, 3).findings(LabelOutOfRange()) == []
    # All are ignored.
    assert of(written, 2**31 - 1, -(2**31)).findings(LabelOutOfRange()) == []


def test_ignored_labels_of_pytorch_are_none(trained):
    def training(capture):
        model = nn.Linear(6, 4)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(4):
            functional.cross_entropy(model(torch.randn(3, 6)), torch.tensor([0, 3, -100])).backward()
            functional.cross_entropy(model(torch.randn(3, 6)), torch.tensor([0, 3, 255]), ignore_index=255).backward()
            optimizer.step()

    assert trained(training).findings(LabelOutOfRange()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(LabelOutOfRange()).findings)} == {}
