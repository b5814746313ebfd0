"""UnusualInputs, on images from 0 to 255, columns in units of their own, NaN, and models that scale themselves."""

from __future__ import annotations

import math
import re

import numpy as np
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
    assert (found.severity, found.tensor) == (Severity.WARNING, "usage/input/Sequential_0/std")
    assert (found.first_step, found.last_step, found.steps) == (0, 7, 8)
    assert 100 < found.evidence["mean"] < 150
    assert (found.evidence["far"], found.evidence["steps"]) == (3, 3)


def in_units(*units):
    return lambda step: torch.randn(16, 12) * torch.tensor([*units, *[1.0] * (12 - len(units))])


def test_columns_in_units_of_their_own(trained):
    (found,) = trained(given(in_units(1, 1e-2, 1e4))).findings(UnusualInputs())
    assert found.severity is Severity.WARNING
    assert (found.evidence["largest_column"], found.evidence["smallest_column"]) == (2, 1)
    assert 5e3 < found.evidence["largest_scale"] < 2e4
    assert 5e-3 < found.evidence["smallest_scale"] < 2e-2
    assert re.match(r"Columns have units of their own: .* of column 2 is .*, that of column 1 is 0\.0", found.cause)


@pytest.mark.parametrize("largest, finds", [(80, True), (25, False)])
def test_one_large_column(trained, largest, finds):
    # The deviation of all columns together stays below the threshold.
    assert bool(trained(given(in_units(2 * largest))).findings(UnusualInputs())) == finds


def test_columns_of_all_the_same_units_are_no_table(trained):
    (found,) = trained(given(images)).findings(UnusualInputs())
    assert "Columns" not in found.cause


def test_a_nan_that_the_loss_does_not_show(trained):
    (found,) = trained(given(with_a_nan)).findings(UnusualInputs())
    assert (found.severity, found.first_step, found.last_step) == (Severity.WARNING, 5, 5)
    assert found.evidence == {"not_finite": pytest.approx(1 / 192)}


def of_nan(fault):
    """A training whose loss is NaN from the third step on, as its inputs are, or as the fault makes something else."""

    def training(capture):
        net = nn.Linear(12, 4)
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for step in range(6):
            x = torch.randn(16, 12)
            if step >= 2:
                if fault == "input":
                    x[0, 0] = math.nan
                elif fault == "weights first":
                    net.weight.data[0, 0] = math.nan
                    x[0, 0] = math.nan
                else:
                    x[0, 0] = math.nan if step > 2 else 0
            loss = functional.cross_entropy(net(x), torch.randint(0, 4, (16,)))
            optimizer.zero_grad()
            (loss * (math.nan if fault == "loss first" and step >= 2 else 1)).backward()
            optimizer.step()

    return training


def test_a_nan_that_reaches_the_loss(trained):
    (found,) = trained(of_nan("input")).findings(UnusualInputs())
    assert (found.severity, found.first_step, found.last_step) == (Severity.PROBLEM, 2, 2)
    assert "weights are finite" in found.cause


@pytest.mark.parametrize("fault", ["weights first", "loss first"])
def test_a_nan_that_comes_from_elsewhere(trained, fault):
    assert trained(of_nan(fault)).findings(UnusualInputs()) == []


def test_a_layer_that_is_not_seen(trained):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 12))

        def forward(self, x):
            return x @ self.weight.t()

    (found,) = trained(given(images, Own)).findings(UnusualInputs())
    assert found.severity is Severity.NOTE


def test_a_layer_that_is_the_model(trained):
    (found,) = trained(given(images, lambda: nn.Linear(12, 4))).findings(UnusualInputs())
    assert found.severity is Severity.WARNING


# Where the inputs are saved and nothing of how they are used.


@pytest.mark.parametrize("scale, inner, finds", [(200, 200, True), (200, 1, False), (1, 1, False)])
def test_inputs_that_are_saved(written, scale, inner, finds):
    run = written(weights="weight$", losses="^loss$")
    values = np.random.default_rng(0).normal(size=(16, 12)).astype(np.float32)
    for _ in range(4):
        names = {"Net_fc.weight": values, "loss": np.float32(1)}
        run.step(**names, Net_input_0=values * scale, **{"Net_fc_input_0": values * inner})
    found = run.ended().findings(UnusualInputs())
    assert [one.tensor for one in found] == ["Net_input_0"] * finds


def test_a_nan_in_inputs_that_are_saved(written):
    run = written(weights="weight$", losses="^loss$")
    values = np.ones((16, 12), np.float32)
    for step in range(4):
        x = values.copy()
        x[0, 0] = math.nan if step == 3 else 1
        run.step(**{"Net_fc.weight": values, "loss": np.float32(1)}, Net_input_0=x)
    (found,) = run.ended().findings(UnusualInputs())
    assert (found.first_step, found.evidence) == (3, {"nan_count": 1})


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
        (images, lambda: nn.Sequential(nn.LayerNorm(12), nn.Linear(12, 4))),
        (lambda step: functional.one_hot(torch.randint(0, 12, (16,)), 12).float(), None),
        (lambda step: torch.poisson(torch.rand(12).expand(16, 12) * 20), None),
        (lambda step: torch.zeros(16, 12), None),
        (lambda step: torch.zeros(16, 12).fill_(-math.inf if step else 0), None),
    ],
    ids=[
        "normal",
        "from 0 to 1",
        "tokens",
        "tokens as floats",
        "scaled inside",
        "normalised inside",
        "by layer",
        "one-hot",
        "counts",
        "zeros",
        "mask",
    ],
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
