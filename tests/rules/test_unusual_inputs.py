"""UnusualInputs, on images from 0 to 255, columns in units of their own, NaN, and models that scale themselves."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import UnusualInputs
from smd_agent.rules.finding import Severity


class Scaled(nn.Module):
    """A model that divides its inputs itself."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(12, 4)

    def forward(self, x):
        return self.inner(x / 255)


def given(make, model=None, count=8):
    def training(capture):
        net = model() if model else nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 4))
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 1e-6)
        for step in range(count):
            optimizer.zero_grad()
            outputs = net(make(step))
            functional.cross_entropy(outputs.nan_to_num(), torch.randint(0, 4, (16,))).backward()
            optimizer.step()

    return training


def images(step):
    return torch.randint(0, 256, (16, 12)).float()


def with_a_nan(step):
    x = torch.randn(16, 12)
    x[3, 4] = math.nan if step == 5 else 0
    return x


def test_images_as_they_were_read(trained):
    (found,) = trained(given(images)).findings(UnusualInputs())
    assert (found.severity, found.tensor) == (Severity.WARNING, "Sequential_input_0")
    assert (found.first_step, found.last_step, found.steps) == (0, 7, 8)
    assert 100 < found.evidence["mean"] < 150
    assert (found.evidence["far"], found.evidence["steps"]) == (3, 3)


def test_columns_in_units_of_their_own(trained):
    units = torch.tensor([1e5, *[1.0] * 11])
    (found,) = trained(given(lambda step: torch.randn(16, 12) * units)).findings(UnusualInputs())
    assert found.evidence["std"] > 1e3


def test_a_nan_that_the_loss_does_not_show(trained):
    (found,) = trained(given(with_a_nan)).findings(UnusualInputs())
    assert (found.first_step, found.last_step, found.evidence) == (5, 5, {"nan_count": 1})


class OfFloats(nn.Module):
    """A model that is given the numbers of tokens as floats."""

    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(300, 12), nn.Linear(144, 4)

    def forward(self, x):
        return self.head(self.embedding(x.long()).flatten(1))


def embedded():
    return nn.Sequential(nn.Embedding(300, 12), nn.Flatten(), nn.Linear(144, 4))


@pytest.mark.parametrize(
    "make, model",
    [
        (lambda step: torch.randn(16, 12), None),
        (lambda step: torch.rand(16, 12), None),
        (lambda step: images(step).long(), embedded),
        (images, OfFloats),
        (images, Scaled),
        (images, lambda: nn.Sequential(nn.BatchNorm1d(12), nn.Linear(12, 4))),
        (lambda step: torch.zeros(16, 12), None),
        (lambda step: torch.zeros(16, 12).fill_(-math.inf if step else 0), None),
    ],
    ids=["normal", "from 0 to 1", "tokens", "tokens as floats", "scaled inside", "normalised inside", "zeros", "mask"],
)
def test_usual_inputs(trained, make, model):
    assert trained(given(make, model)).verdict(UnusualInputs()).findings == []


@pytest.mark.parametrize("scale, finds", [(51, True), (49, False), (1.1e-4, False), (0.9e-4, True)])
def test_how_far(trained, scale, finds):
    signs = torch.tensor([1.0, -1.0]).repeat(16, 6) * (191 / 192) ** 0.5
    assert bool(trained(given(lambda step: signs * scale)).findings(UnusualInputs())) == finds


@pytest.mark.parametrize("far, count, finds", [(3, 5, True), (2, 3, False), (3, 6, False)])
def test_at_how_many_steps(trained, far, count, finds):
    run = trained(given(lambda step: torch.randn(16, 12) * (1000 if step < far else 1), count=count))
    assert bool(run.findings(UnusualInputs())) == finds


def test_clean_trainings_are_silent(clean):
    verdicts = {name: run.verdict(UnusualInputs()) for name, run in clean.items()}
    assert {name: one.findings for name, one in verdicts.items() if one.findings} == {}
    # The others have tokens.
    assert {name for name, one in verdicts.items() if one.not_for_it} == {
        "large_embedding",
        "masked_attention",
        "tied_weights",
    }
