"""ParameterNotOptimized, on layers that were replaced, or left out, after the optimizer was made."""

from __future__ import annotations

import json

import pytest
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


class Held(nn.Module):
    """Modules or parameters that it holds as they are given, behind two layers."""

    def __init__(self, held):
        super().__init__()
        self.front = nn.Linear(6, 8)
        self.held = held
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = self.front(x)
        for one in every(self.held):
            x = x + (one(x) if isinstance(one, nn.Module) else x * one)
        return self.head(x)


def every(held):
    if isinstance(held, (list, tuple)):
        return [each for one in held for each in every(one)]
    return [each for one in held.values() for each in every(one)] if isinstance(held, dict) else [held]


def blocks(count=2):
    return [nn.Linear(8, 8) for _ in range(count)]


HELD = {
    "list": (blocks, ["0.bias", "0.weight", "1.bias", "1.weight"]),
    "tuple": (lambda: tuple(blocks()), ["0.bias", "0.weight", "1.bias", "1.weight"]),
    "dict": (lambda: dict(zip("ab", blocks(), strict=True)), ["a.bias", "a.weight", "b.bias", "b.weight"]),
    "lists in a list": (lambda: [blocks(1), blocks(1)], ["0.0.bias", "0.0.weight", "1.0.bias", "1.0.weight"]),
    "whole nets": (lambda: [nn.Sequential(*blocks(1)), nn.Identity()], ["0.0.bias", "0.0.weight"]),
    "parameters": (lambda: [nn.Parameter(torch.ones(8)) for _ in range(2)], ["0", "1"]),
}


@pytest.mark.parametrize("kind", HELD)
def test_modules_in_a_plain_container(trained, kind):
    make, names = HELD[kind]

    def held(capture):
        model = Held(make())
        capture(model)
        steps(model, torch.optim.Adam(model.parameters()))

    found = trained(held).findings(ParameterNotOptimized())
    assert [one.tensor for one in found] == [f"Held_held.{name}" for name in names]
    for one in found:
        # At the first step it is not known yet whether anything else changes them.
        assert (one.severity, one.first_step, one.last_step) == (Severity.PROBLEM, 1, 5)
        assert one.evidence == {"not_optimized": len(names), "optimized": 4}
        assert "plain list or dict" in one.cause
        assert "nn.ModuleList" in one.advice


def test_a_list_below_a_list(trained):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.inside = blocks()

        def forward(self, x):
            return self.inside[1](self.inside[0](x))

    def held(capture):
        model = nn.Sequential(Held([Block(), Block()]))
        capture(model)
        steps(model, torch.optim.Adam(model.parameters()))

    found = {one.tensor for one in trained(held).findings(ParameterNotOptimized())}
    assert len(found) == 8
    assert "Sequential_0.held.1.inside.0.weight" in found


def test_one_in_a_list_that_is_given_to_an_optimizer_later(trained):
    def given(capture):
        model = Held(blocks())
        capture(model)
        optimizer = torch.optim.Adam(model.parameters())
        steps(model, optimizer)
        optimizer.add_param_group({"params": [*model.held[0].parameters(), model.held[1].weight]})
        steps(model, optimizer)

    (left,) = trained(given).findings(ParameterNotOptimized())
    assert left.tensor == "Held_held.1.bias"


def in_the_optimizer(model):
    return torch.optim.Adam([*model.parameters(), *(one for each in model.held for one in each.parameters())])


def in_evaluation_mode(model):
    for one in model.held:
        one.eval()


def frozen(model):
    for one in model.held:
        one.requires_grad_(False)


def of_another_module(model):
    model.again = nn.ModuleList(model.held)


def updated_by_hand(model):
    def update(*_):
        for one in model.held:
            for parameter in one.parameters():
                if parameter.grad is not None:
                    parameter.data.sub_(0.01 * parameter.grad)
                    parameter.grad = None

    model.register_forward_pre_hook(update)


def made_anew(model):
    """As the fast weights of a model that learns to learn."""

    def make(*_):
        model.held = [nn.Parameter(torch.ones(8)) for _ in range(2)]

    model.register_forward_pre_hook(make)


def without_a_gradient(model):
    for one in model.held:
        one.register_forward_hook(lambda _, args, output: output.detach())


@pytest.mark.parametrize(
    "change",
    [in_the_optimizer, in_evaluation_mode, frozen, of_another_module, updated_by_hand, made_anew, without_a_gradient],
)
def test_modules_in_a_list_that_nothing_need_train(trained, change):
    def held(capture):
        model = Held(blocks())
        capture(model)
        optimizer = change(model) or torch.optim.Adam(model.parameters())
        steps(model, optimizer, 9)

    assert trained(held).findings(ParameterNotOptimized()) == []


def test_one_alone_in_a_list_is_hidden_on_purpose(trained):
    def held(capture):
        model = Held(blocks(1))
        capture(model)
        steps(model, torch.optim.Adam(model.parameters()))

    assert trained(held).findings(ParameterNotOptimized()) == []


def told_of(**facts):
    """What is told of a trained layer and of others, by name; of each whether an optimizer has it and ``behind``."""
    known = {"body": {"requires_grad": True, "optimizer": "Adam", "gradient": True}}
    for name, (optimizer, behind) in facts.items():
        known[name] = {"requires_grad": True, "optimizer": optimizer, "gradient": bool(optimizer), "behind": behind}
    return {"parameters/variables": json.dumps(known)}


def test_variables_behind_those_that_are_trained(written):
    run = written(parameters="^parameters/")
    run.step(**told_of())
    run.step(**told_of(head=(None, True), teacher=(None, False)))
    run.step(loss=1.0)
    (found,) = run.ended().findings(ParameterNotOptimized())
    assert (found.tensor, found.severity, found.steps) == ("head", Severity.WARNING, 2)
    assert found.evidence == {"not_optimized": 1, "optimized": 1}
    assert "made after them" in found.cause


def told_of_a_base(**facts):
    base = {"requires_grad": True, "optimizer": None, "gradient": False, **facts}
    head = {"requires_grad": True, "optimizer": "Adam", "gradient": True}
    return {"parameters/model": json.dumps({"base": base, "head": head})}


def test_a_base_that_is_unfrozen_without_compile(written):
    run = written(parameters="^parameters/")
    run.step(**told_of_a_base(requires_grad=False))
    # Set trainable now; that nothing trains it is told later.
    run.step(**told_of_a_base())
    run.step(**told_of_a_base(unfrozen=True))
    run.step(loss=1.0)
    (found,) = run.ended().findings(ParameterNotOptimized())
    assert (found.tensor, found.severity, found.first_step, found.steps) == ("base", Severity.PROBLEM, 2, 2)
    assert "after compile()" in found.cause
    assert "Compile the model again" in found.advice


def test_a_base_that_is_compiled_again(written):
    run = written(parameters="^parameters/")
    run.step(**told_of_a_base(unfrozen=True))
    run.step(**told_of_a_base(optimizer="Adam", gradient=True))
    assert run.ended().findings(ParameterNotOptimized()) == []


@pytest.mark.parametrize("later", [{}, {"head": ("SGD", False)}], ids=["not told of", "in an optimizer"])
def test_a_variable_behind_that_is_trained_later(written, later):
    run = written(parameters="^parameters/")
    run.step(**told_of(head=(None, True)))
    run.step(**told_of(**later))
    assert run.ended().findings(ParameterNotOptimized()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(ParameterNotOptimized()))} == {}
