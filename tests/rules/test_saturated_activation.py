"""SaturatedActivation, on layers that begin at an end of their range, and as smdebug documents it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from harness.rule_runs import found, met, verdict, written
from torch import nn
from torch.nn import functional

from smd_agent.rules import SaturatedActivation
from smd_agent.rules.finding import Severity


def course(*shares, name="tanh1_output_0", shape=(16, 20)):
    return [{name: {"saturated_share": share, "shape": shape}} for share in shares]


def unscaled(scale):
    """Train on inputs of this size."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.tanh, self.head = nn.Linear(12, 40), nn.Tanh(), nn.Linear(40, 4)

        def forward(self, x):
            return self.head(self.tanh(self.first(x)))

    def training(capture):
        model = Net()
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(10):
            optimizer.zero_grad()
            x = scale * torch.randn(64, 12)
            functional.cross_entropy(model(x), torch.randint(0, 4, (64,))).backward()
            optimizer.step()

    return training


def test_inputs_that_are_not_scaled(trained):
    (one,) = trained(unscaled(1e5)).findings(SaturatedActivation())
    assert (one.tensor, one.severity) == ("tanh_output_0", Severity.WARNING)
    assert (one.first_step, one.last_step) == (4, 9)
    assert one.evidence["saturated_percent"] > 90
    assert trained(unscaled(1.0)).findings(SaturatedActivation()) == []


@pytest.mark.parametrize("share, finds", [(0.5, False), (0.51, True)])
def test_at_the_threshold(tmp_path, share, finds):
    trial = written(tmp_path / "run", course(*[share] * 7))
    assert found(trial, SaturatedActivation()) == ({"tanh1_output_0": (4, 6)} if finds else {})


@pytest.mark.parametrize("shares", [(0.4, *[0.9] * 12), (*[0.9] * 8, 0.4), [0.9] * 4 + [0.2] + [0.9] * 8])
def test_what_is_learned_or_passes_is_none(tmp_path, shares):
    assert found(written(tmp_path / "run", course(*shares)), SaturatedActivation()) == {}


@pytest.mark.parametrize(
    "name, low, mean, square, finds",
    [
        ("tanh_output_0", -1.0, 0.0, 0.86, True),
        ("tanh_output_0", -1.0, 0.0, 0.84, False),
        ("1_output_0", -1.0, 0.0, 0.9, True),
        ("sigmoid_output_0", 0.0, 0.52, 0.485, True),
        ("sigmoid_output_0", 0.0, 0.52, 0.48, False),
        # As of a mask, or of inputs that are 0 and 1.
        ("1_output_0", 0.0, 0.52, 0.52, False),
        ("tanh_output_0", -1.1, 0.0, 0.9, False),
    ],
)
def test_units_that_go_from_one_end_to_the_other(tmp_path, name, low, mean, square, finds):
    numbers = {"saturated_share": 0.0, "min": low, "max": 1.0, "mean": mean, "l2": (square * 320) ** 0.5}
    steps = [{name: numbers | {"shape": (16, 20)}}] * 7
    said = found(written(tmp_path / "run", steps), SaturatedActivation())
    assert said == ({name: (4, 6)} if finds else {})


def test_weights_that_begin_too_large(trained):
    def begun(std):
        def training(capture):
            model = nn.Sequential(nn.Linear(12, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 4))
            for layer in (model[0], model[2]):
                nn.init.normal_(layer.weight, std=std)
            capture(model)
            optimizer = torch.optim.SGD(model.parameters(), 0.01)
            for _ in range(10):
                optimizer.zero_grad()
                functional.cross_entropy(model(torch.randn(64, 12)), torch.randint(0, 4, (64,))).backward()
                optimizer.step()

        return training

    found_on = trained(begun(5.0)).findings(SaturatedActivation())
    assert [one.tensor for one in found_on] == ["1_output_0", "3_output_0"]
    assert all(0 <= one.evidence["slope"] < 0.15 for one in found_on)
    assert trained(begun(12**-0.5)).findings(SaturatedActivation()) == []


def test_layers_that_come_later_are_left_out(tmp_path):
    steps = [*course(0.0), *course(*[0.9] * 8, name="sigmoid_output_0")]
    assert found(written(tmp_path / "run", steps), SaturatedActivation()) == {}


def test_small_batches_are_left_out(tmp_path):
    assert found(written(tmp_path / "a", course(*[0.9] * 8, shape=(7, 20))), SaturatedActivation()) == {}
    assert found(written(tmp_path / "b", course(*[0.9] * 8, shape=(8, 20))), SaturatedActivation()) != {}


def test_a_name_that_says_nothing_makes_it_a_note(tmp_path):
    said = verdict(written(tmp_path / "run", course(*[0.9] * 8, name="layer_output_0")), SaturatedActivation())
    assert [one.severity for one in said.findings] == [Severity.NOTE]


@pytest.mark.parametrize("mean, lowest, finds", [(1 / 20, 0.0, False), (1.1 / 20, 0.0, True), (1 / 20, -1.0, True)])
def test_a_sure_classifier_is_none(tmp_path, mean, lowest, finds):
    steps = [{"head_output_0": {"saturated_share": 0.9, "shape": (32, 20), "mean": mean, "min": lowest}}] * 7
    assert bool(found(written(tmp_path / "run", steps), SaturatedActivation())) == finds


def inputs(units, between, value, count=1000):
    """An input of ten units of which so many have this value, but for so many percent of the elements."""
    array = np.zeros((count, 10), np.float32)
    array[:, :units] = value
    array[: round(between * count / 100), :units] = 0
    return array


@pytest.mark.parametrize(
    "name, value, finds",
    [
        ("tanh_input_0", 9.5, True),
        ("tanh_input_0", 9.4, False),
        ("tanh_input_0", -9.5, True),
        ("tanh_input_0", -9.4, False),
        ("sigmoid_input_0", 17.1, True),
        ("sigmoid_input_0", 16.9, False),
        ("sigmoid_input_0", -23.1, True),
        ("sigmoid_input_0", -22.9, False),
    ],
)
def test_as_it_is_documented(tmp_path, name, value, finds):
    trial = written(tmp_path / "run", [{name: inputs(6, 0.9, value)}])
    assert met(trial, SaturatedActivation(base_trial=trial)) == [0] * finds
    assert met(trial, SaturatedActivation(base_trial=trial, tensor_regex="nothing")) == []
    assert met(trial, SaturatedActivation(base_trial=trial, threshold_inactivity=0.9)) == []


@pytest.mark.parametrize("units, between, finds", [(6, 0.9, True), (6, 1.0, False), (5, 0.0, False)])
def test_units_and_layers_as_they_are_documented(tmp_path, units, between, finds):
    trial = written(tmp_path / "run", [{"tanh_input_0": inputs(units, between, 20.0)}])
    assert met(trial, SaturatedActivation(base_trial=trial)) == [0] * finds
    limits = {"threshold_tanh_max": 20.5}
    assert met(trial, SaturatedActivation(base_trial=trial, **limits)) == []


def test_of_statistics_alone_it_says_what_it_lacks(tmp_path):
    trial = written(tmp_path / "run", [{"tanh_input_0": {"max": 20.0}}])
    said = verdict(trial, SaturatedActivation(tensor_regex=".*tanh_input"))
    assert [one.option for one in said.not_judged] == ["add inputs to --save, with --raw"]


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(SaturatedActivation()))} == {}
