"""AdapterFrozen, on adapters that were frozen with the model below, and on those that are frozen for a reason."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import AdapterFrozen
from smd_agent.rules.finding import Severity

WIDTH, RANK, CLASSES = 8, 2, 3


class LoRALinear(nn.Module):
    """A linear layer with an adapter, as people write it."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.lora_A = nn.Parameter(torch.randn(RANK, WIDTH))
        self.lora_B = nn.Parameter(torch.zeros(WIDTH, RANK))

    def forward(self, x):
        return self.base(x) + x @ self.lora_A.T @ self.lora_B.T


class PeftLinear(nn.Module):
    """The same with the names of peft, and several adapters."""

    def __init__(self, base, names=("default",)):
        super().__init__()
        self.base_layer = base
        self.lora_A = nn.ModuleDict({name: nn.Linear(WIDTH, RANK, bias=False) for name in names})
        self.lora_B = nn.ModuleDict({name: nn.Linear(RANK, WIDTH, bias=False) for name in names})
        for one in self.lora_B.values():
            nn.init.zeros_(one.weight)

    def forward(self, x):
        return self.base_layer(x) + sum(self.lora_B[name](self.lora_A[name](x)) for name in self.lora_A)


class Net(nn.Module):
    """Two layers with adapters, and a head."""

    def __init__(self, kind=LoRALinear):
        super().__init__()
        self.first, self.second = kind(nn.Linear(WIDTH, WIDTH)), kind(nn.Linear(WIDTH, WIDTH))
        self.classifier = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        return self.classifier(self.second(self.first(x).relu()).relu())


def freeze(model, but):
    for name, parameter in model.named_parameters():
        parameter.requires_grad = any(part in name for part in but)


def steps(model, count=6):
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], 1e-2)
    for _ in range(count):
        optimizer.zero_grad()
        functional.cross_entropy(model(torch.randn(16, WIDTH)), torch.randint(CLASSES, (16,))).backward()
        optimizer.step()


def training_of(but, kind=LoRALinear, before=lambda model: None, count=6):
    """A training of what has one of these in its name."""

    def training(capture):
        model = Net(kind)
        capture(model)
        before(model)
        freeze(model, but)
        steps(model, count)

    return training


@pytest.mark.parametrize("kind", [LoRALinear, PeftLinear])
def test_adapters_that_were_frozen_with_the_rest(trained, kind):
    (found,) = trained(training_of(("classifier",), kind)).findings(AdapterFrozen())
    assert found.severity is Severity.PROBLEM
    assert found.tensor.startswith("Net_first.lora_B")
    assert found.evidence == {"frozen": 4, "idle": 2, "trained": 2}
    assert (found.first_step, found.last_step, found.steps) == (2, 5, 4)
    assert trained(training_of(("classifier", "lora_"), kind)).verdict(AdapterFrozen()).findings == []


def test_a_model_that_was_trained_before_it_got_adapters(trained):
    def training(capture):
        model = Net(lambda base: base)
        capture(model)
        steps(model)
        model.first = LoRALinear(model.first)
        freeze(model, ("classifier",))
        steps(model)

    (found,) = trained(training).findings(AdapterFrozen())
    assert found.tensor == "Net_first.lora_B"
    assert found.evidence == {"frozen": 2, "idle": 1, "trained": 2}


def warmed_up(model):
    """Adapters are trained, and frozen then."""
    freeze(model, ("lora_",))
    steps(model)


def loaded(model):
    """Adapters of another training are put in."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.normal_()


def zeros(model):
    nn.init.zeros_(model.first.weight)


RIGHT = {
    "adapters alone": training_of(("lora_",)),
    "some of them": training_of(("classifier", "second.lora_")),
    "second matrices": training_of(("classifier", "lora_B")),
    "trained before": training_of(("classifier",), before=warmed_up, count=12),
    "loaded": training_of(("classifier",), before=loaded),
    "one of two": training_of(("classifier", "default"), kind=lambda base: PeftLinear(base, ("default", "other"))),
    "no adapters": training_of(("classifier",), kind=lambda base: base),
    "other frozen zeros": training_of(("classifier",), kind=lambda base: base, before=zeros),
}


@pytest.mark.parametrize("name", RIGHT)
def test_frozen_for_a_reason(trained, name):
    assert trained(RIGHT[name]).findings(AdapterFrozen()) == []


def test_adapters_that_are_trained_after_the_head(trained):
    def training(capture):
        model = Net()
        capture(model)
        freeze(model, ("classifier",))
        steps(model)
        freeze(model, ("classifier", "lora_"))
        steps(model)

    assert trained(training).findings(AdapterFrozen()) == []


def test_one_step_less_than_it_takes(trained):
    run = trained(training_of(("classifier",), count=3))
    assert len(run.findings(AdapterFrozen())) == 1
    assert run.findings(AdapterFrozen(patience=4)) == []


def test_a_model_that_nothing_trains(trained):
    def training(capture):
        model, other = Net(), nn.Linear(WIDTH, CLASSES)
        capture(model, other)
        freeze(model, ())
        optimizer = torch.optim.SGD(other.parameters(), 0.1)
        for _ in range(6):
            optimizer.zero_grad()
            x = torch.randn(16, WIDTH)
            functional.mse_loss(other(x), model(x)).backward()
            optimizer.step()

    assert trained(training).findings(AdapterFrozen()) == []


def test_clean_trainings_are_silent(clean):
    found = {name: run.verdict(AdapterFrozen()).findings for name, run in clean.items()}
    assert {name: findings for name, findings in found.items() if findings} == {}
