"""DoubleActivation, on losses that are given probabilities."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import DoubleActivation
from smd_agent.rules.finding import Severity

CLASSES = 4


def training_of(last, loss, target=lambda: torch.randint(0, CLASSES, (16,)), count=4, shape=lambda y: y):
    def training(capture):
        model = nn.Sequential(nn.Linear(6, CLASSES), last)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(count):
            optimizer.zero_grad()
            loss(shape(model(torch.randn(16, 6))), target()).backward()
            optimizer.step()

    return training


def yes_or_no():
    return torch.randint(0, 2, (16, CLASSES)).float()


def shares():
    return torch.rand(16, CLASSES).softmax(1)


FAULTS = {
    "softmax before CrossEntropyLoss": (nn.Softmax(1), nn.CrossEntropyLoss()),
    "softmax before cross_entropy": (nn.Softmax(1), functional.cross_entropy),
    "sigmoid before BCEWithLogitsLoss": (nn.Sigmoid(), nn.BCEWithLogitsLoss(), yes_or_no),
    "softmax before NLLLoss": (nn.Softmax(1), nn.NLLLoss()),
    "softmax before kl_div": (nn.Softmax(1), nn.KLDivLoss(reduction="batchmean"), shares),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_probabilities_where_others_are_expected(trained, fault):
    (found,) = trained(training_of(*FAULTS[fault])).findings(DoubleActivation())
    assert found.severity is Severity.PROBLEM
    assert (found.first_step, found.steps) == (2, 2)
    assert 0 <= found.evidence["input_min"] < found.evidence["input_max"] <= 1
    assert ("sigmoid itself" if "sigmoid" in fault else "probabilities") in found.cause


def test_probabilities_in_another_shape_or_without_a_graph_of_softmax(trained):
    pixels = training_of(
        nn.Softmax(1),
        functional.cross_entropy,
        lambda: torch.randint(0, CLASSES, (4, 2, 2)),
        shape=lambda y: y.reshape(4, 2, 2, CLASSES).permute(0, 3, 1, 2),
    )
    by_hand = training_of(nn.Identity(), functional.cross_entropy, shape=lambda y: y.exp() / y.exp().sum(1, True))
    squeezed = training_of(
        nn.Sigmoid(), nn.BCEWithLogitsLoss(), lambda: yes_or_no().reshape(-1), shape=lambda y: y.reshape(-1)
    )
    for training in (pixels, by_hand, squeezed):
        assert len(trained(training).findings(DoubleActivation())) == 1


def facts(**numbers):
    return {f"usage/loss/{CROSS_ENTROPY}_0/{name}": value for name, value in numbers.items()}


CROSS_ENTROPY = "SparseCategoricalCrossentropy"


def of_others(written, count=3, **numbers):
    run = written(usage="^usage/")
    for _ in range(count):
        run.step(**facts(**numbers))
    return run.ended()


def test_losses_of_other_frameworks_say_what_they_expect(written):
    (found,) = of_others(written, expects_logits=1, activated=1).findings(DoubleActivation())
    assert (found.severity, found.tensor) == (Severity.PROBLEM, f"usage/loss/{CROSS_ENTROPY}_0/activated")
    probabilities = {"input_min": 0.0, "input_max": 0.9, "row_sum_error": 1e-7, "classes": 4}
    (found,) = of_others(written, expects_logits=1, **probabilities).findings(DoubleActivation())
    assert "softmax itself" in found.cause
    (found,) = of_others(written, expects_logits=0, expects_logarithms=1, **probabilities).findings(DoubleActivation())
    assert "logarithms" in found.cause
    assert of_others(written, expects_logits=0, activated=1, **probabilities).findings(DoubleActivation()) == []
    assert of_others(written, input_min=0.0, activated=1).findings(DoubleActivation()) == []


def test_what_keras_has_undone_is_a_note(written):
    (found,) = of_others(written, expects_logits=1, activated=1, undone=1).findings(DoubleActivation())
    assert found.severity is Severity.NOTE
    assert "from_logits" in found.cause


GOOD = {
    "logits": (nn.Identity(), nn.CrossEntropyLoss()),
    "log_softmax, which cross entropy leaves as it is": (nn.LogSoftmax(1), nn.CrossEntropyLoss()),
    "logarithms": (nn.LogSoftmax(1), nn.NLLLoss()),
    "sigmoid and its own loss": (nn.Sigmoid(), nn.BCELoss(), yes_or_no),
    "logits within 0 and 1": (nn.Hardsigmoid(), nn.BCEWithLogitsLoss(), yes_or_no),
    "logits for NLLLoss, which another rule tells": (nn.Linear(CLASSES, CLASSES), nn.NLLLoss()),
    "positive logits": (nn.ReLU(), nn.CrossEntropyLoss()),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_a_loss_expects(trained, name):
    assert trained(training_of(*GOOD[name])).verdict(DoubleActivation()).findings == []


def test_one_step_less_than_it_takes(trained):
    assert (
        trained(training_of(*FAULTS["softmax before cross_entropy"], count=2)).verdict(DoubleActivation()).findings
        == []
    )


@pytest.mark.parametrize("error, findings", [(0.009, 1), (0.011, 0)])
def test_rows_that_sum_to_nearly_1(trained, error, findings):
    training = training_of(
        nn.Identity(), functional.cross_entropy, shape=lambda y: (y.exp() / y.exp().sum(1, True)) * (1 + error)
    )
    assert len(trained(training).findings(DoubleActivation())) == findings


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(DoubleActivation()).findings)} == {}


def counts():
    return torch.poisson(torch.full((16, CLASSES), 3.0))


class Exponential(nn.Module):
    """Rates of their logarithms."""

    def forward(self, x):
        return x.exp()


class Rates(nn.Module):
    """Rates that are never 0."""

    def forward(self, x):
        return functional.softplus(x) + 1e-6


RATES = {"softplus": nn.Softplus(), "exponential": Exponential(), "rectifier": nn.ReLU(), "never 0": Rates()}


@pytest.mark.parametrize("last", RATES)
def test_rates_where_their_logarithms_are_expected(trained, last):
    (found,) = trained(training_of(RATES[last], nn.PoissonNLLLoss(), counts)).findings(DoubleActivation())
    assert found.severity is Severity.PROBLEM
    assert "logarithms of rates" in found.cause
    assert "log_input=False" in found.advice


@pytest.mark.parametrize("last", RATES)
def test_rates_that_the_loss_is_told_of(trained, last):
    right = training_of(RATES[last], nn.PoissonNLLLoss(log_input=False), counts)
    assert trained(right).findings(DoubleActivation()) == []


@pytest.mark.parametrize("last", [nn.Identity(), nn.Tanh()])
def test_logarithms_of_rates(trained, last):
    assert trained(training_of(last, nn.PoissonNLLLoss(), counts)).findings(DoubleActivation()) == []
