"""ParameterNotOptimized, on layers that were replaced, or left out, after the optimizer was made."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import ParameterNotOptimized
from smd_agent.rules.finding import Severity


def net():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


def steps(model, optimizer, count=6):
    for _ in range(count):
        optimizer.zero_grad()
        functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 4, (16,))).backward()
        optimizer.step()


def test_a_head_that_was_replaced(trained):
    def replaced(capture):
        model = net()
        optimizer = torch.optim.Adam(model.parameters())
        model[2] = nn.Linear(8, 4)
        capture(model)
        steps(model, optimizer)

    found = trained(replaced).findings(ParameterNotOptimized())
    assert [(one.tensor, one.severity) for one in found] == [
        ("Sequential_2.bias", Severity.PROBLEM),
        ("Sequential_2.weight", Severity.PROBLEM),
    ]
    assert found[0].evidence == {"not_optimized": 2, "optimized": 2}
    # What is known is saved in the first step only, and holds until it changes.
    assert (found[0].first_step, found[0].last_step, found[0].steps) == (0, 5, 6)


def test_a_layer_that_was_left_out(trained):
    def left_out(capture):
        model = net()
        capture(model)
        steps(model, torch.optim.Adam(model[2].parameters()))

    assert {one.tensor for one in trained(left_out).findings(ParameterNotOptimized())} == {
        "Sequential_0.bias",
        "Sequential_0.weight",
    }


def test_one_that_is_given_to_an_optimizer_later(trained):
    def given(capture, at):
        model = net()
        capture(model)
        optimizer = torch.optim.Adam(model[2].parameters())
        steps(model, optimizer)
        optimizer.add_param_group({"params": model[0].weight if at == "weight" else model[0].parameters()})
        steps(model, optimizer)

    assert trained(lambda capture: given(capture, "all")).findings(ParameterNotOptimized()) == []
    (left,) = trained(lambda capture: given(capture, "weight")).findings(ParameterNotOptimized())
    assert left.tensor == "Sequential_0.bias"


def test_frozen_ones_and_those_of_another_optimizer(trained):
    def two(capture):
        model = net()
        model[0].weight.requires_grad_(False)
        capture(model)
        first, second = torch.optim.Adam([model[0].bias]), torch.optim.SGD(model[2].parameters(), 0.1)
        for number in range(8):
            first.zero_grad()
            second.zero_grad()
            functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 4, (16,))).backward()
            (first if number % 2 else second).step()

    assert trained(two).findings(ParameterNotOptimized()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(ParameterNotOptimized()))} == {}
