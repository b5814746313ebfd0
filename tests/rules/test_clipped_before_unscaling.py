"""ClippedBeforeUnscaling, on gradients that are clipped while they are scaled, and on programs that look alike."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from smd_agent.rules import ClippedBeforeUnscaling
from smd_agent.rules.finding import Severity


def by_norm(parameters, limit=1.0):
    nn.utils.clip_grad_norm_(parameters, limit)


def by_value(parameters, limit=1.0):
    nn.utils.clip_grad_value_(parameters, limit)


def scaled(clip, when, count=5, scale=1024.0, passes=1, enabled=True, **settings):
    """Train with a scaler; ``clip`` is called with the parameters, ``before`` or ``after`` they are unscaled."""

    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01, **settings)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale, enabled=enabled)
        for _ in range(count):
            optimizer.zero_grad()
            for _ in range(passes):
                scaler.scale(model(torch.randn(16, 6)).pow(2).mean()).backward()
            if when == "after":
                scaler.unscale_(optimizer)
            clip(model.parameters())
            if when == "too early":
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()

    return training


@pytest.mark.parametrize("clip", [by_norm, by_value])
@pytest.mark.parametrize("when", ["before", "too early"])
@pytest.mark.parametrize("passes", [1, 2])
def test_clipped_while_they_are_scaled(trained, clip, when, passes):
    (found,) = trained(scaled(clip, when, passes=passes)).findings(ClippedBeforeUnscaling())
    assert (found.severity, found.tensor) == (Severity.PROBLEM, "usage/optimizer/SGD/clipped_scaled")
    assert (found.first_step, found.last_step, found.steps) == (2, 4, 3)
    assert found.evidence == {"clip_scale": 1024, "clip_limit": 1}


def test_an_optimizer_that_unscales_in_its_kernel(trained):
    (found,) = trained(scaled(by_norm, "before", fused=True)).findings(ClippedBeforeUnscaling())
    assert found.evidence == {"clip_scale": 1024, "clip_limit": 1}
    assert trained(scaled(by_norm, "after", fused=True)).findings(ClippedBeforeUnscaling()) == []


def test_one_step_less_than_it_takes(trained):
    assert len(trained(scaled(by_norm, "before", count=3)).findings(ClippedBeforeUnscaling())) == 1
    run = trained(scaled(by_norm, "before", count=3))
    assert run.findings(ClippedBeforeUnscaling(patience=4)) == []


@pytest.mark.parametrize("clip", [by_norm, by_value])
@pytest.mark.parametrize("passes", [1, 2])
def test_clipped_after_they_were_unscaled(trained, clip, passes):
    assert trained(scaled(clip, "after", passes=passes)).findings(ClippedBeforeUnscaling()) == []


@pytest.mark.parametrize("limit, findings", [(10.23, 1), (10.24, 0), (1024.0, 0), (math.inf, 0)])
def test_a_limit_for_scaled_gradients_and_one_that_limits_nothing(trained, limit, findings):
    run = trained(scaled(lambda parameters: by_norm(parameters, limit), "before"))
    assert len(run.findings(ClippedBeforeUnscaling())) == findings


@pytest.mark.parametrize("scale, findings", [(1.0, 0), (101.0, 1)])
def test_a_scale_of_one(trained, scale, findings):
    run = trained(scaled(by_norm, "before", scale=scale))
    assert len(run.findings(ClippedBeforeUnscaling(ratio=1.0 if scale == 1 else 0.01))) == findings


NOT_JUDGED = {
    "a limit that the program has multiplied by the scale": scaled(
        lambda parameters: by_norm(parameters, torch.tensor(1.0) * 1024), "before"
    ),
    "nothing clipped": scaled(lambda _: None, "before"),
    "a scaler that is not enabled": scaled(by_norm, "before", enabled=False),
    "a norm that is only measured": scaled(
        lambda parameters: torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in parameters])), "before"
    ),
}


@pytest.mark.parametrize("name", NOT_JUDGED)
def test_nothing_to_judge(trained, name):
    verdict = trained(NOT_JUDGED[name]).verdict(ClippedBeforeUnscaling())
    assert (verdict.findings, verdict.problems) == ([], [])


def with_two_optimizers(clipped_of):
    """A training in which the gradients of the first optimizer alone are unscaled before some are clipped."""

    def two(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
        capture(model)
        first = torch.optim.SGD(model[0].parameters(), 0.01)
        second = torch.optim.Adam(model[1].parameters(), 0.01)
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        for _ in range(5):
            model.zero_grad()
            scaler.scale(model(torch.randn(16, 6)).pow(2).mean()).backward()
            scaler.unscale_(first)
            nn.utils.clip_grad_norm_(clipped_of(model).parameters(), 1.0)
            scaler.step(first)
            scaler.step(second)
            scaler.update()

    return two


def test_only_the_optimizer_whose_gradients_are_still_scaled(trained):
    (found,) = trained(with_two_optimizers(lambda model: model)).findings(ClippedBeforeUnscaling())
    assert found.tensor == "usage/optimizer/Adam/clipped_scaled"


def test_parameters_of_another_optimizer_are_clipped(trained):
    assert trained(with_two_optimizers(lambda model: model[0])).findings(ClippedBeforeUnscaling()) == []


def test_gradients_come_out_the_same(trained):
    """An iterator of parameters is clipped as it is without us."""

    def left_by(*models):
        torch.manual_seed(3)
        model = nn.Linear(6, 1)
        for capture in models:
            capture(model)
        model(torch.randn(16, 6)).pow(2).mean().backward()
        nn.utils.clip_grad_value_((one for one in model.parameters()), clip_value=0.01)
        nn.utils.clip_grad_norm_((one for one in model.parameters()), max_norm=0.01)
        return [one.grad.clone() for one in model.parameters()]

    found = []
    trained(lambda capture: found.extend(left_by(capture)))
    assert all(map(torch.equal, found, left_by()))


def test_clean_trainings_are_silent(clean):
    verdicts = {name: run.verdict(ClippedBeforeUnscaling()) for name, run in clean.items()}
    assert {name: verdict.findings for name, verdict in verdicts.items() if verdict.findings} == {}
