"""OptimizerNotOfModel, on layers and models that were replaced after the optimizer was made."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import OptimizerNotOfModel
from smd_agent.rules.finding import Severity


def net():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


def steps(model, optimizer, count=4):
    for _ in range(count):
        optimizer.zero_grad()
        functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 4, (16,))).backward()
        optimizer.step()


def replaced(count, keep=None):
    def training(capture):
        model = net()
        optimizer = torch.optim.Adam(model.parameters())
        if keep is not None:
            keep.append(model[2])
        model[2] = nn.Linear(8, 4)
        capture(model)
        steps(model, optimizer, count)

    return training


def test_a_head_that_was_replaced_is_told_with_the_one_that_was_forgotten(trained):
    (found,) = trained(replaced(3)).findings(OptimizerNotOfModel())
    assert (found.severity, found.tensor) == (Severity.PROBLEM, "usage/optimizer/Adam/unowned")
    assert found.evidence == {"unowned": 2, "with_gradient": 0.5, "not_optimized": 2}
    assert "2 parameters of no module, and not Sequential_2.weight, Sequential_2.bias:" in found.cause
    assert (found.first_step, found.steps) == (2, 1)
    assert found.in_short(found.tensor) == "Adam has 2 parameters of no module"


def test_two_steps_are_not_enough(trained):
    assert trained(replaced(2)).verdict(OptimizerNotOfModel()).findings == []
    assert len(trained(replaced(2)).findings(OptimizerNotOfModel(patience=2))) == 1


def test_a_module_that_is_there_and_was_not_called_is_no_mistake(trained):
    assert trained(replaced(4, keep=[])).findings(OptimizerNotOfModel()) == []


def test_a_model_that_was_copied_after_the_optimizer_was_made(trained):
    def copied(capture):
        model = net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        trained_one = copy.deepcopy(model)
        capture(trained_one)
        steps(trained_one, optimizer)

    (found,) = trained(copied).findings(OptimizerNotOfModel())
    assert (found.severity, found.tensor) == (Severity.PROBLEM, "usage/optimizer/SGD/with_gradient")
    assert found.evidence == {"with_gradient": 0, "not_optimized": 4}
    assert "copied" in found.cause
    assert found.in_short(found.tensor) == "no parameter of SGD has a gradient"


def test_free_parameters_that_are_learned_are_no_mistake(trained):
    def with_temperature(capture, by_turns):
        model, free = net(), [nn.Parameter(torch.ones(())) for _ in range(2)]
        capture(model)
        optimizer = torch.optim.SGD([*model.parameters(), *free], 0.1)
        for number in range(6):
            optimizer.zero_grad()
            temperature = free[number % 2] if by_turns else free[0] * free[1]
            output = model(torch.randn(16, 6)) * temperature
            functional.cross_entropy(output, torch.randint(0, 4, (16,))).backward()
            optimizer.step()

    for by_turns in (False, True):
        run = trained(lambda capture, by_turns=by_turns: with_temperature(capture, by_turns))
        assert run.findings(OptimizerNotOfModel()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(OptimizerNotOfModel()))} == {}
