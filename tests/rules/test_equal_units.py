"""EqualUnits, on networks whose weights begin with one number."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.rules import EqualUnits
from smd_agent.rules.finding import Severity


def training_of(model, prepare, steps=6, classes=4, rate=0.05, optimizer=torch.optim.Adam):
    """Train a classifier whose layers were prepared by hand."""

    def training(capture):
        net = model()
        with torch.no_grad():
            for layer in net.modules():
                if isinstance(layer, nn.Linear):
                    prepare(layer)
        capture(net)
        update = optimizer([p for p in net.parameters() if p.requires_grad], rate)
        for _ in range(steps):
            update.zero_grad()
            functional.cross_entropy(net(torch.randn(32, 6)), torch.randint(0, classes, (32,))).backward()
            update.step()

    return training


def constant(layer):
    layer.weight.fill_(0.05)
    layer.bias.zero_()


def deep(*between):
    hidden = nn.Linear(6, 100), nn.Tanh(), *between, nn.Linear(100, 50), nn.Tanh(), *between
    return nn.Sequential(*hidden, nn.Linear(50, 4))


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD])
def test_the_hidden_layers_of_constant_weights(trained, optimizer):
    run = trained(training_of(deep, constant, optimizer=optimizer))
    found = run.findings(EqualUnits())
    assert {(one.tensor, one.severity) for one in found} == {
        ("Sequential_0.weight", Severity.PROBLEM),
        ("Sequential_2.weight", Severity.PROBLEM),
    }
    for one in found:
        assert one.evidence == {"value": pytest.approx(0.05), "spread": pytest.approx(0, abs=1e-4)}
        assert (one.first_step, one.last_step, one.steps) == (3, 5, 3)


def test_one_step_less_than_it_takes(trained):
    run = trained(training_of(deep, constant, steps=4))
    assert run.findings(EqualUnits())
    assert run.findings(EqualUnits(patience=4)) == []


def head_from_zero(layer):
    if layer.out_features == 4:
        layer.weight.zero_()
        layer.bias.zero_()


def frozen(layer):
    constant(layer)
    if layer.out_features != 4:
        layer.requires_grad_(False)


def one_layer_of_them(layer):
    if layer.in_features == 6:
        constant(layer)


@pytest.mark.parametrize("prepare", [head_from_zero, frozen, one_layer_of_them, lambda layer: layer.bias.zero_()])
def test_what_parts_or_is_not_trained(trained, prepare):
    assert trained(training_of(deep, prepare)).findings(EqualUnits()) == []


def test_dropout_has_units_part(trained):
    assert trained(training_of(lambda: deep(nn.Dropout(0.5)), constant)).findings(EqualUnits()) == []


NAMES = {
    "Keras": ("dense/weights/sequential/dense/{}:0", "gradients/sequential/dense/{}Grad", "kernel"),
    "a tape": ("weights/sequential/dense/{}:0", "gradients/sequential/dense/{}Grad", "kernel"),
    "Gluon": ("net0_dense0_{}", "gradient/net0_dense0_{}", "weight"),
}


@pytest.mark.parametrize("parted", [0, 0.9e-4, 1.1e-4])
@pytest.mark.parametrize("of", NAMES)
def test_the_names_of_other_frameworks(written, of, parted):
    name, gradient, own = NAMES[of]
    run = written(weights="kernel|weight$|weights", biases="bias", gradients="^gradient")
    for step in range(5):
        bias = np.full(3, 0.1 * step)
        bias[0] *= 1 - parted
        tensors = {
            name.format(own): np.arange(6.0).reshape(2, 3) * step if step else np.full((2, 3), 0.5),
            name.format("bias"): bias,
            gradient.format(own): np.arange(6.0).reshape(2, 3),
            gradient.format("bias"): np.full(3, -1.0),
        }
        run.step(**tensors)
    found = run.ended().findings(EqualUnits())
    assert [one.tensor for one in found] == [name.format(own)] * (parted < 1e-4)


def test_a_gradient_that_is_not_the_same_for_all(written):
    """As the sign of gradients may be, by which some optimizers update."""
    run = written(weights="weight$", biases="bias", gradients="^gradient")
    for step in range(5):
        run.step(
            **{
                "Net_fc.weight": np.full((2, 3), 0.1 * step),
                "Net_fc.bias": np.full(3, 0.1 * step),
                "gradient/Net_fc.weight": np.linspace(1, 1.002, 6).reshape(2, 3),
                "gradient/Net_fc.bias": np.linspace(1, 1.002, 3),
            }
        )
    assert run.ended().findings(EqualUnits()) == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(EqualUnits()))} == {}
