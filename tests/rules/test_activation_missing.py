"""ActivationMissing, on losses that are given neither probabilities nor their logarithms."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import ActivationMissing, DoubleActivation
from smd_agent.rules.finding import Severity

CLASSES = 4
LOSS = "loss/SparseCategoricalCrossentropy_0"


def training_of(last, loss, count=4):
    def training(capture):
        model = nn.Sequential(nn.Linear(6, CLASSES), last)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(count):
            optimizer.zero_grad()
            loss(model(torch.randn(16, 6)), torch.randint(0, CLASSES, (16,))).backward()
            optimizer.step()

    return training


def of_others(written, count=3, **numbers):
    run = written(usage="^usage/")
    for _ in range(count):
        run.step(**{f"usage/{LOSS}/{name}": value for name, value in numbers.items()})
    return run.ended()


def test_nll_loss_of_logits_is_a_warning(trained):
    (found,) = trained(training_of(nn.Linear(CLASSES, CLASSES), nn.NLLLoss())).findings(ActivationMissing())
    assert found.severity is Severity.WARNING
    assert (found.first_step, found.steps) == (2, 2)
    assert found.evidence["input_max"] > 0
    assert "log_softmax" in found.cause
    assert "log_softmax" in found.advice


GOOD = {
    "logits": (nn.Identity(), nn.CrossEntropyLoss()),
    "logarithms": (nn.LogSoftmax(1), functional.nll_loss),
    "probabilities, which another rule tells": (nn.Softmax(1), nn.NLLLoss()),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_a_loss_expects(trained, name):
    assert trained(training_of(*GOOD[name])).findings(ActivationMissing()) == []


def test_numbers_that_are_no_probabilities(written):
    for ends in ((-0.002, 0.5), (0.0, 1.002)):
        run = of_others(written, expects_logits=0, input_min=ends[0], input_max=ends[1])
        (found,) = run.findings(ActivationMissing())
        assert (found.severity, found.tensor) == (Severity.PROBLEM, f"usage/{LOSS}/input_min")
        assert "from_logits=True" in found.advice
    assert of_others(written, expects_logits=0, input_min=-0.0005, input_max=1.0005).findings(ActivationMissing()) == []


def test_a_linear_layer_whose_values_are_not_known(written):
    (found,) = of_others(written, expects_logits=0, linear=1, activated=0).findings(ActivationMissing())
    assert (found.severity, found.tensor) == (Severity.PROBLEM, f"usage/{LOSS}/linear")
    assert "without softmax or sigmoid" in found.cause
    assert of_others(written, expects_logits=0, linear=0, activated=0).findings(ActivationMissing()) == []
    assert of_others(written, expects_logits=1, linear=1, activated=0).findings(ActivationMissing()) == []


@pytest.mark.parametrize("error, findings", [(0.09, 0), (0.11, 1)])
def test_logarithms_of_what_does_not_sum_to_1(written, error, findings):
    numbers = {"input_min": -3.0, "input_max": -0.1, "row_sum_error": 9.0, "log_sum_error": error}
    found = of_others(written, expects_logits=0, expects_logarithms=1, **numbers).findings(ActivationMissing())
    assert [one.severity for one in found] == [Severity.WARNING] * findings


def test_logarithms_along_the_other_axis_are_told_by_another_rule(written):
    numbers = {"input_min": -3.0, "input_max": -0.1, "log_sum_error": 2.0, "sample_sum_error": 1e-6}
    run = of_others(written, expects_logits=0, expects_logarithms=1, **numbers)
    assert run.verdict(ActivationMissing()).findings == []


def test_losses_of_numbers_and_too_few_steps(written):
    assert of_others(written, input_min=-9.0, input_max=9.0).findings(ActivationMissing()) == []
    run = of_others(written, count=2, expects_logits=0, linear=1)
    assert run.verdict(ActivationMissing()).findings == []


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_logarithms_that_kl_div_is_given_along_any_axis(trained, axis):
    def training(capture):
        net = nn.Linear(4, 5)
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(4):
            optimizer.zero_grad()
            logarithms = net(torch.randn(6, 3, 4)).log_softmax(axis)
            nn.functional.kl_div(logarithms, torch.rand(6, 3, 5).softmax(axis), reduction="batchmean").backward()
            optimizer.step()

    run = trained(training)
    assert run.findings(ActivationMissing()) == run.findings(DoubleActivation()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(ActivationMissing()).findings)} == {}
