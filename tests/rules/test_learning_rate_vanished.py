"""LearningRateVanished, on schedules that fall far too early, and on those that people use."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from smd_agent.rules import LearningRateVanished
from smd_agent.rules.finding import Severity

STEPS = 60


def scheduled(rate, groups=1):
    """Train with a learning rate that is a function of the step."""

    def training(capture):
        layers = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
        capture(layers)
        parts = [layers.parameters()] if groups == 1 else [layer.parameters() for layer in layers]
        optimizer = torch.optim.SGD([{"params": part} for part in parts], 0.1)
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = rate(step)
            optimizer.zero_grad()
            layers(torch.randn(16, 6)).pow(2).mean().backward()
            optimizer.step()

    return training


def falling_at(step, to=9e-5):
    return scheduled(lambda now: 0.1 if now < step else to)


def test_a_decay_by_batch_where_epochs_are_meant(trained):
    (found,) = trained(scheduled(lambda step: 0.1 * 0.5 ** (step // 2))).findings(LearningRateVanished())
    assert found.severity is Severity.WARNING
    assert found.tensor == "optimizer/SGD/lr"
    assert (found.first_step, found.last_step, found.steps) == (20, 59, 40)
    expected = {"largest": 0.1, "last": 0.1 * 0.5**29, "share": 40 / 60}
    assert found.evidence == pytest.approx(expected)


def test_the_share_of_steps_that_has_it(trained):
    assert trained(falling_at(48)).findings(LearningRateVanished()) == []
    (found,) = trained(falling_at(47)).findings(LearningRateVanished())
    assert found.severity is Severity.NOTE
    (found,) = trained(falling_at(40)).findings(LearningRateVanished())
    assert found.severity is Severity.NOTE
    (found,) = trained(falling_at(39)).findings(LearningRateVanished())
    assert found.severity is Severity.WARNING


@pytest.mark.parametrize("to, findings", [(1.01e-4, 0), (0.99e-4, 1), (0.0, 0)])
def test_how_low_it_is(trained, to, findings):
    assert len(trained(falling_at(20, to)).findings(LearningRateVanished())) == findings


def test_one_group_of_two_and_a_rate_that_comes_back(trained):
    (found,) = trained(scheduled(lambda step: 0.1 if step < 20 else 1e-5, groups=2)).findings(LearningRateVanished())
    assert found.tensor == "optimizer/SGD/group_0/lr"
    back = scheduled(lambda step: 1e-5 if 10 < step < 55 else 0.1)
    assert trained(back).findings(LearningRateVanished()) == []


def compounded(factor, every=4, wait=0):
    """The rate of a schedule that multiplies what it has returned before."""

    def rate(step):
        turns = range(max(step // every - wait + 1, 0))
        return 0.1 * math.prod(factor(turn) for turn in turns)

    return rate


def wrong_factor(turn):
    return 0.6**turn if turn != 5 else 0.6**4


AGAIN = {
    # A schedule, and the factor that is told; None where it is another law.
    "from the first turn on": (compounded(lambda turn: 0.7**turn), 0.7),
    "after some turns": (compounded(lambda turn: 0.6**turn, wait=3), 0.6),
    "upwards at first": (compounded(lambda turn: 0.6 ** (turn - 1)), 0.6),
    "by an exponential": (compounded(lambda turn: math.exp(-0.5 * turn), every=3), math.exp(-0.5)),
    "always by the same": (compounded(lambda turn: 0.4), None),
    "another factor once": (compounded(wrong_factor), None),
    "at other times": (lambda step: 0.1 * 0.7 ** (math.isqrt(step) * (math.isqrt(step) + 1)), None),
    "a bell": (lambda step: 0.1 * math.exp(-0.06 * (step // 4 + 0.3) ** 2), None),
    "a few steps": (lambda step: 0.1 * (1, 0.1, 1e-3, 1e-6)[min(step // 8, 3)], None),
}


@pytest.mark.parametrize("name", AGAIN)
def test_a_schedule_that_multiplies_its_own_result(trained, name):
    rate, factor = AGAIN[name]
    (found,) = trained(scheduled(rate)).findings(LearningRateVanished())
    assert found.evidence.get("factor") == (None if factor is None else pytest.approx(factor))
    assert ("has changed before" in " ".join(found.cause.split())) == (factor is not None)
    assert ("lr * 0.9" in found.advice) == (factor is not None)


USUAL = {
    "cosine": lambda step: 0.05 * (1 + math.cos(math.pi * step / STEPS)),
    "linear": lambda step: 0.1 * (1 - step / STEPS),
    "cubic": lambda step: 0.1 * (1 - step / STEPS) ** 3,
    "steps of a tenth": lambda step: 0.1 ** (1 + step // 15),
    "exponential to a thousandth": lambda step: 0.1 * 1e-3 ** (step / STEPS),
    "a long warm-up": lambda step: 1e-6 if step < 40 else 0.1,
    "restarts": lambda step: 0.05 * (1 + math.cos(math.pi * (step % 20) / 20)),
    "a small one all along": lambda step: 1e-7,
}


@pytest.mark.parametrize("name", USUAL)
def test_usual_schedules(trained, name):
    assert trained(scheduled(USUAL[name])).findings(LearningRateVanished()) == []


def test_schedules_of_the_library(trained):
    def training(capture, make):
        model = nn.Linear(6, 1)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        schedule = make(optimizer)
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(torch.randn(16, 6)).pow(2).mean().backward()
            optimizer.step()
            schedule.step()

    def one_cycle(optimizer):
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.5, total_steps=STEPS + 1)

    assert trained(lambda capture: training(capture, one_cycle)).findings(LearningRateVanished()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(LearningRateVanished()))} == {}
