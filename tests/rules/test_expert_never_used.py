"""ExpertNeverUsed, on mixtures of experts whose router uses all of them, and on others."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from smd_agent.rules import ExpertNeverUsed
from smd_agent.rules.finding import Severity

EXPERTS, WIDTH = 4, 6


class Mixture(nn.Module):
    """A layer that has each row computed by one of its experts."""

    def __init__(self, router="router", deep=False):
        super().__init__()
        self.add_module(router, nn.Linear(WIDTH, EXPERTS))
        one = (lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU())) if deep else lambda: nn.Linear(WIDTH, WIDTH)
        self.experts = nn.ModuleList(one() for _ in range(EXPERTS))
        self.chooses = router

    def forward(self, x, chosen=None):
        weight, number = getattr(self, self.chooses)(x).softmax(-1).max(-1)
        number = number if chosen is None else chosen
        y = torch.zeros_like(x)
        for place, expert in enumerate(self.experts):
            if (number == place).any():
                y[number == place] = expert(x[number == place]) * weight[number == place][:, None]
        return y


class Model(nn.Module):
    def __init__(self, **told):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Mixture(**told) for _ in range(2)), nn.Linear(WIDTH, 1)

    def forward(self, x, chosen=None):
        for block in self.blocks:
            x = x + block(x, chosen)
        return self.head(x)


def training_of(choose, count=12, model=Model, **told):
    """A training; ``choose`` gives the expert of each row at a step, or None where the router does."""

    def training(capture):
        net = model(**told)
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for step in range(count):
            optimizer.zero_grad()
            net(torch.randn(16, WIDTH), choose(step)).pow(2).mean().backward()
            optimizer.step()

    return training


def the_first(step):
    return torch.zeros(16, dtype=torch.int64)


def all_in_turn(step):
    return torch.full((16,), step % EXPERTS)


@pytest.mark.parametrize("told", [{}, {"router": "gate"}, {"deep": True}])
def test_experts_that_are_never_chosen(trained, told):
    found = trained(training_of(the_first, **told)).findings(ExpertNeverUsed())
    rest = "0.weight" if told.get("deep") else "weight"
    names = [f"Model_blocks.{block}.experts.{number}.{rest}" for block in range(2) for number in (1, 2, 3)]
    assert sorted(one.tensor for one in found) == names
    assert {one.severity for one in found} == {Severity.WARNING}
    assert found[0].evidence == {"never": 3, "experts": 4}


def test_a_mixture_by_itself(trained):
    (first, *_) = trained(training_of(the_first, model=Mixture)).findings(ExpertNeverUsed())
    assert first.tensor == "Mixture_experts.1.weight"


@pytest.mark.parametrize("choose", [all_in_turn, lambda step: None])
def test_experts_that_are_chosen(trained, choose):
    assert trained(training_of(choose)).findings(ExpertNeverUsed()) == []


def test_one_that_is_chosen_at_last(trained):
    def late(step):
        return torch.arange(16) % EXPERTS if step == 10 else the_first(step)

    assert trained(training_of(late)).findings(ExpertNeverUsed()) == []


def test_lists_without_a_router(trained):
    class Heads(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.heads = nn.Linear(WIDTH, WIDTH), nn.ModuleList(nn.Linear(WIDTH, 1) for _ in range(3))

        def forward(self, x, chosen):
            return self.heads[0](self.body(x))

    assert trained(training_of(the_first, model=Heads)).findings(ExpertNeverUsed()) == []


def test_experts_that_are_frozen(trained):
    class Frozen(Model):
        def __init__(self):
            super().__init__()
            for block in self.blocks:
                block.experts[1:].requires_grad_(False)

    assert trained(training_of(the_first, model=Frozen)).findings(ExpertNeverUsed()) == []


def test_as_much_as_it_takes(trained):
    run = trained(training_of(the_first, count=8))
    assert len(run.findings(ExpertNeverUsed())) == 6
    assert run.findings(ExpertNeverUsed(patience=9)) == []


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(ExpertNeverUsed()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
