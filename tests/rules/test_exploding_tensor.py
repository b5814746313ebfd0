"""ExplodingTensor, on weights and gradients that are not finite, and as smdebug documents it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from smd_agent.errors import NoMoreData
from smd_agent.rules import ExplodingTensor, invoke_rule


def broken_from(bad, value, clean_again=None):
    """Train, and break a gradient at some steps."""

    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for step in range(12):
            optimizer.zero_grad()
            loss = model(torch.randn(16, 6)).pow(2).mean()
            if bad <= step < (clean_again or 12):
                model[0].weight.register_hook(lambda gradient: gradient * value) if step == bad else None
            loss.backward()
            optimizer.step()

    return training


def overflowing(steps):
    """Train with gradients of which one element is infinite at these steps, which makes no update."""

    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for step in range(12):
            optimizer.zero_grad()
            scale = torch.ones(16, 1)
            scale[0] = math.inf if step in steps else 1
            # The loss is finite where the infinite factor meets 0.
            output = model(torch.randn(16, 6))
            loss = output.pow(2).mean() + torch.where(scale.isinf(), 0, 0 * output).sum()
            handle = output.register_hook(lambda gradient, scale=scale: gradient * scale)
            loss.backward()
            handle.remove()
            if step in steps:
                optimizer.zero_grad()
            optimizer.step()

    return training


def test_weights_that_turn_nan(trained):
    found = trained(broken_from(4, math.nan)).findings(ExplodingTensor())
    by_name = {one.tensor: one for one in found}
    # The update of step 4 breaks the first layer, and all else comes from that.
    assert by_name["Sequential_0.weight"].first_step == 5
    assert by_name["Sequential_0.weight"].evidence["nan_count"] == 48
    assert by_name["Sequential_1.weight"].first_step == 6
    assert {one.last_step for one in found} == {11}
    assert found[0].tensor == "Sequential_0.weight"


@pytest.mark.parametrize(
    "steps, finds", [((3,), False), ((0, 1, 2, 3, 4), False), ((9, 10, 11), True), ((10, 11), False)]
)
def test_gradients_that_overflow_now_and_then_are_none(trained, steps, finds):
    run = trained(overflowing(steps))
    assert bool(run.findings(ExplodingTensor())) == finds
    assert run.findings(ExplodingTensor(patience=1))


def test_as_it_is_documented(trained):
    trial = trained(overflowing((3, 7))).trial()
    met = []

    class Told(ExplodingTensor):
        def invoke_at_step(self, step):
            found = super().invoke_at_step(step)
            met.extend([step] * found)
            return found

    for arguments, expected in (
        ({}, [3, 7]),
        ({"collection_names": "gradients"}, [3, 7]),
        ({"collection_names": "weights,losses"}, []),
        ({"tensor_regex": "gradient/.*1.bias"}, [3, 7]),
        ({"tensor_regex": ["nothing"]}, []),
        ({"only_nan": "True", "tensor_regex": "gradient/.*1.bias"}, []),
    ):
        met.clear()
        with pytest.raises(NoMoreData):
            invoke_rule(Told(trial, **arguments))
        assert met == expected, arguments


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(ExplodingTensor()))} == {}
