"""GradientNotCleared, on a forgotten zero_grad and on gradients that are left on purpose."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import GradientNotCleared
from smd_agent.rules.finding import Severity


def net():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


def loss_of(model):
    return functional.cross_entropy(model(torch.randn(16, 6)), torch.randint(0, 4, (16,)))


def forgotten(count, clip=False):
    def training(capture):
        model = net()
        capture(model)
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(count):
            loss_of(model).backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
        training.model = model

    return training


@pytest.mark.parametrize("clip", [False, True])
def test_a_forgotten_zero_grad(trained, clip):
    (found,) = trained(forgotten(5, clip)).findings(GradientNotCleared())
    assert (found.severity, found.tensor) == (Severity.PROBLEM, "usage/optimizer/Adam/kept_gradient")
    # There is nothing to be kept at the first step.
    assert (found.first_step, found.last_step, found.steps) == (2, 4, 3)
    assert found.evidence["kept_gradient"] > 0


def test_one_step_less_than_it_takes(trained):
    run = trained(forgotten(3))
    assert len(run.findings(GradientNotCleared())) == 1
    assert run.findings(GradientNotCleared(patience=3)) == []


def test_every_tenth_step_is_enough(trained):
    (found,) = trained(forgotten(31), every=10).findings(GradientNotCleared())
    assert (found.first_step, found.steps) == (20, 2)


def test_a_part_that_is_not_cleared(trained):
    def of_head_only(capture):
        model = net()
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(5):
            model[2].zero_grad()
            loss_of(model).backward()
            optimizer.step()

    assert len(trained(of_head_only).findings(GradientNotCleared())) == 1


def test_a_gan_whose_critic_is_never_cleared(trained):
    def gan(capture, clear):
        makes, judges = nn.Linear(4, 2), nn.Linear(2, 1)
        capture(makes, judges)
        of_makes, of_judges = (torch.optim.SGD(model.parameters(), 0.1) for model in (makes, judges))
        for _ in range(6):
            made = makes(torch.randn(8, 4))
            if clear:
                of_judges.zero_grad(set_to_none=clear == "to none")
            judges(made.detach()).square().mean().backward()
            of_judges.step()
            of_makes.zero_grad()
            (-judges(made)).mean().backward()
            of_makes.step()

    (found,) = trained(lambda capture: gan(capture, "")).findings(GradientNotCleared())
    # It is the first one that updates.
    assert found.tensor == "usage/optimizer/SGD/kept_gradient"
    for clear in ("to none", "to zero"):
        assert trained(lambda capture, clear=clear: gan(capture, clear)).findings(GradientNotCleared()) == []


WAYS = ["before the forward", "before the backward", "after the update"]


@pytest.mark.parametrize("to_none", [False, True])
@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("way", WAYS)
def test_gradients_that_are_cleared_for_each_update(trained, way, passes, to_none):
    def cleared(capture):
        model = net()
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        for _ in range(6):
            for number in range(passes):
                if not number and way == "before the forward":
                    optimizer.zero_grad(set_to_none=to_none)
                loss = loss_of(model)
                if not number and way == "before the backward":
                    optimizer.zero_grad(set_to_none=to_none)
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if way == "after the update":
                optimizer.zero_grad(set_to_none=to_none)

    assert trained(cleared).findings(GradientNotCleared()) == []


def test_one_of_two_optimizers_that_accumulates_longer(trained):
    def slow(capture):
        model = net()
        capture(model)
        fast, seldom = (torch.optim.SGD(layer.parameters(), 0.1) for layer in (model[0], model[2]))
        for number in range(24):
            fast.zero_grad()
            loss_of(model).backward()
            fast.step()
            if number % 4 == 3:
                seldom.step()
                seldom.zero_grad()

    assert trained(slow).findings(GradientNotCleared()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(GradientNotCleared()))} == {}
