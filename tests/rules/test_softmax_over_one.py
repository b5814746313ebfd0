"""SoftmaxOverOne, on models that end with a softmax over one output, and losses of one class."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import SoftmaxOverOne
from smd_agent.rules.finding import Severity


def training_of(last, loss, units=1, target=lambda n: torch.randint(0, 2, (16, n)).float(), count=4, shape=None):
    def training(capture):
        model = nn.Sequential(nn.Linear(6, units), last)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(count):
            optimizer.zero_grad()
            output = model(torch.randn(16, 6))
            output = output if shape is None else output.reshape(shape)
            loss(output, target(units) if shape is None else target(units).reshape(shape)).backward()
            optimizer.step()

    return training


def classes(n):
    return torch.randint(0, n, (16,))


FAULTS = {
    "softmax before BCELoss": ((nn.Softmax(1), nn.BCELoss()), "softmax_over", "sigmoid"),
    "the last axis": ((nn.Softmax(-1), functional.binary_cross_entropy), "softmax_over", "sigmoid"),
    "squeezed": ((nn.Softmax(1), nn.BCELoss(), 1, lambda n: torch.rand(16), 4, (16,)), "softmax_over", "sigmoid"),
    "softmax before MSELoss": ((nn.Softmax(1), nn.MSELoss()), "softmax_over", "sigmoid"),
    "softmax before BCEWithLogitsLoss": ((nn.Softmax(1), nn.BCEWithLogitsLoss()), "softmax_over", "sigmoid"),
    "one class": ((nn.Identity(), nn.CrossEntropyLoss()), "classes", "BCEWithLogitsLoss"),
    "one class by number": ((nn.Identity(), nn.CrossEntropyLoss(), 1, classes), "classes", "BCEWithLogitsLoss"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_always_1(trained, fault):
    training, fact, advice = FAULTS[fault]
    (found,) = trained(training_of(*training)).findings(SoftmaxOverOne())
    assert found.severity is Severity.PROBLEM
    assert found.evidence[fact] == 1
    assert advice in found.advice
    assert (found.first_step, found.steps) == (2, 2)
    assert found.in_short(found.tensor) == "softmax over a single number"


GOOD = {
    "sigmoid": (nn.Sigmoid(), nn.BCELoss()),
    "logits": (nn.Identity(), nn.BCEWithLogitsLoss()),
    "two classes": (nn.Identity(), nn.CrossEntropyLoss(), 2, classes),
    "softmax over two": (nn.Softmax(1), nn.BCELoss(), 2),
    "softmax over the batch": (nn.Softmax(0), nn.MSELoss()),
    "a model that picks by class": (nn.Identity(), nn.NLLLoss(), 1, classes),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_can_be_learned(trained, name):
    assert trained(training_of(*GOOD[name])).verdict(SoftmaxOverOne()).findings == []


def test_one_step_less_than_it_takes(trained):
    assert trained(training_of(nn.Softmax(1), nn.BCELoss(), count=2)).verdict(SoftmaxOverOne()).findings == []


@pytest.mark.parametrize(
    "numbers, findings",
    [
        ({"expects_logits": 0, "activated": 1, "softmax_over": 1}, 1),
        ({"expects_logits": 0, "activated": 1, "softmax_over": 2}, 0),
        ({"expects_logits": 0, "classes": 1}, 1),
        ({"expects_logits": 1, "classes": 1}, 1),
        ({"expects_logits": 0, "expects_logarithms": 1, "classes": 1}, 0),
        ({"expects_logits": 1, "classes": 2}, 0),
    ],
)
def test_losses_of_other_frameworks(written, numbers, findings):
    run = written(usage="^usage/")
    for _ in range(3):
        run.step(**{f"usage/loss/BinaryCrossentropy_0/{name}": value for name, value in numbers.items()})
    assert len(run.ended().verdict(SoftmaxOverOne()).findings) == findings


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(SoftmaxOverOne()).findings)} == {}
