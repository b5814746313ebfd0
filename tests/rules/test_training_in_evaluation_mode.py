"""TrainingInEvaluationMode, on models that stay in evaluation mode."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import TrainingInEvaluationMode
from smd_agent.rules.finding import Severity


def training_of(change, before=3, after=3, layer=lambda: nn.Dropout(0.2)):
    """Train for some steps, and for some more after something was changed."""

    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), layer(), nn.Linear(8, 4))
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for number in range(before + after):
            if number == before:
                change(model)
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 4, (16,))).backward()
            optimizer.step()

    return training


def test_eval_that_is_not_undone(trained):
    for layer in (lambda: nn.Dropout(0.2), lambda: nn.BatchNorm1d(8)):
        (found,) = trained(training_of(nn.Module.eval, layer=layer)).findings(TrainingInEvaluationMode())
        assert (found.severity, found.tensor) == (Severity.PROBLEM, "usage/model/Sequential/training")
        assert (found.first_step, found.steps) == (4, 2)
        assert found.evidence["last_in_training_mode"] == 2


def test_one_step_less_than_it_takes(trained):
    assert trained(training_of(nn.Module.eval, after=1)).findings(TrainingInEvaluationMode()) == []


def test_evaluation_mode_from_the_first_step_on_is_a_note(trained):
    (found,) = trained(training_of(nn.Module.eval, before=0)).findings(TrainingInEvaluationMode())
    assert found.severity is Severity.NOTE
    assert "from the first step" in found.cause


def test_single_layers_may_be_frozen_and_others_do_not_mind(trained):
    frozen = training_of(lambda model: model[1].eval(), layer=lambda: nn.BatchNorm1d(8))
    does_not_mind = training_of(nn.Module.eval, layer=nn.ReLU)
    for training in (frozen, does_not_mind):
        assert trained(training).findings(TrainingInEvaluationMode()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(TrainingInEvaluationMode()))} == {}
