"""UpdatesSkipped, on loss scalers whose gradients overflow at any scale."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from smd_agent.rules import ExplodingTensor, UpdatesSkipped


def scaled(steps, bad, why="backward", init_scale=2.0**16, optimizers=1):
    """Train with a GradScaler; gradients of the steps of ``bad`` are not finite."""

    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=init_scale)
        for step in range(steps):
            optimizer.zero_grad()
            output = model(torch.randn(16, 6))
            loss = output.pow(2).mean()
            if step in bad:
                # The square root of 0 is finite, and its derivative is not.
                loss = loss + (output - output).sum().sqrt() if why == "backward" else loss * math.inf
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    return training


def test_a_derivative_that_is_not_finite_at_any_scale(trained):
    run = trained(scaled(30, range(4, 30)))
    (found,) = run.findings(UpdatesSkipped())
    assert found.tensor == "optimizer/GradScaler/scale"
    assert (found.first_step, found.last_step, found.steps) == (4, 29, 26)
    assert found.evidence == {"skipped": 18, "scale": 0.5, "first_scale": 2.0**16}
    assert found.cause.startswith("The loss is finite and its gradients are not")
    # One fault, one finding.
    assert run.findings(ExplodingTensor()) == []


def test_a_loss_that_is_not_finite(trained):
    (found,) = trained(scaled(30, range(30), why="loss")).findings(UpdatesSkipped())
    assert found.cause.startswith("The loss itself is not finite")


def test_weights_that_are_not_finite_from_the_start(trained):
    def training(capture):
        def spoil(model):
            with torch.no_grad():
                model[0].weight[0, 0] = math.nan
            return capture(model)

        scaled(30, ())(spoil)

    (found,) = trained(training).findings(UpdatesSkipped())
    assert found.cause.startswith("Weights were not finite")


# With a scale that stays above 1 it takes 20 steps from the first to the last; with one below, 5 that are saved.
@pytest.mark.parametrize(
    "steps, bad, scale, finds",
    [
        (20, range(20), 2.0**100, False),
        (21, range(21), 2.0**100, True),
        (21, range(20), 2.0**100, False),
        (22, {*range(22)} - {1}, 2.0**100, False),
        (4, range(4), 1.0, False),
        (5, range(5), 1.0, True),
        (5, range(5), 16.0, False),
    ],
)
def test_how_long_it_takes(trained, steps, bad, scale, finds):
    assert (
        bool(trained(scaled(steps + 5, {*(step + 5 for step in bad)}, init_scale=scale)).findings(UpdatesSkipped()))
        == finds
    )


def test_saved_steps_far_apart(trained):
    assert trained(scaled(60, range(60)), every=10).findings(UpdatesSkipped())
    assert trained(scaled(41, range(41), init_scale=2.0**60), every=10).findings(UpdatesSkipped())
    assert trained(scaled(40, range(40), init_scale=2.0**60), every=10).verdict(UpdatesSkipped()).findings == []


@pytest.mark.parametrize("falls, finds", [(True, True), (False, False)])
def test_a_scaler_that_does_not_say_so(written, falls, finds):
    """Keras's and Gluon's have a scale; that nothing moves has another reason where it does not fall."""
    run = written(optimizer="^optimizer/", updates="^update/")
    for step in range(25):
        scale = {"optimizer/LossScaleOptimizer/loss_scale": 2.0 ** (40 - step * falls)}
        run.step(**scale, **{"update/dense/kernel": 0.0, "update/dense/bias": 0.0})
    assert bool(run.ended().findings(UpdatesSkipped())) == finds


def test_a_run_without_a_scaler_is_not_for_it(clean):
    assert clean["sgd"].verdict(UpdatesSkipped()).not_for_it == ["UpdatesSkipped"]


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(UpdatesSkipped()) for name, run in clean.items()}
    assert {name for name, one in found.items() if one.judged} == {"scaler_that_finds_its_scale"}
    assert {name for name, one in found.items() if one.findings} == set()
