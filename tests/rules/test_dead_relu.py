"""DeadRelu, on layers that die and on those that are 0 for other reasons, and as smdebug documents it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from harness.rule_runs import found, met, verdict, written
from torch import nn
from torch.nn import functional

from smd_agent.rules import DeadRelu
from smd_agent.rules.finding import Severity

SHAPE = (16, 20)


def output(dead, zero=None, low=0.0, shape=SHAPE):
    """Statistics of an output: half of what is not dead is 0, unless it is said."""
    zero = dead + (1 - dead) / 2 if zero is None else zero
    return {"dead_share": dead, "zero_share": zero, "min": low, "shape": shape}


def course(*shares, name="layer_output_0", **more):
    return [{name: output(share, **more)} for share in shares]


def killed(rate):
    """Train with a first step that throws the biases of the hidden layer far below 0, or not."""

    def training(capture):
        model = nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 4))
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for step in range(12):
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(64, 12)), torch.randint(0, 4, (64,))).backward()
            optimizer.step()
            if step == 2:
                with torch.no_grad():
                    model[0].bias[:30] -= rate

    return training


def test_a_layer_that_dies(trained):
    (one,) = trained(killed(1000.0)).findings(DeadRelu())
    assert one.severity is Severity.NOTE
    # Five steps in a row from step 3 on.
    assert (one.first_step, one.last_step) == (7, 11)
    assert one.evidence["dead_percent"] == pytest.approx(75)
    assert one.evidence["at_first"] < 5
    assert trained(killed(0.0)).findings(DeadRelu()) == []


def test_a_layer_that_is_dead_from_the_first_step_on(trained):
    def training(capture):
        model = nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 4))
        nn.init.constant_(model[0].bias, -100.0)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(8):
            optimizer.zero_grad()
            functional.cross_entropy(model(torch.randn(64, 12)), torch.randint(0, 4, (64,))).backward()
            optimizer.step()

    (one,) = trained(training).findings(DeadRelu())
    assert (one.evidence["dead_percent"], one.evidence["at_first"]) == (100, 100)
    assert one.severity is Severity.WARNING
    assert one.cause.startswith("It gives nothing but zeros from the first step on")


@pytest.mark.parametrize("frozen", [True, False])
def test_an_adapter_of_zeros_that_is_not_trained(trained, frozen):
    class Adapter(nn.Module):
        def __init__(self):
            super().__init__()
            self.base, self.a, self.b = nn.Linear(8, 12), nn.Linear(8, 2, bias=False), nn.Linear(2, 12, bias=False)
            nn.init.zeros_(self.b.weight).requires_grad_(not frozen)

        def forward(self, x):
            return self.base(x) + self.b(self.a(x)).detach()

    def training(capture):
        model = nn.Sequential(Adapter(), nn.Linear(12, 1))
        capture(model)
        optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], 0.1)
        for _ in range(8):
            optimizer.zero_grad()
            model(torch.randn(16, 8)).pow(2).mean().backward()
            optimizer.step()

    (found,) = trained(training).findings(DeadRelu())
    assert found.tensor == "0.b_output_0"
    assert found.cause.startswith("It gives nothing but zeros, and its own weights stay as they are")
    assert found.advice.startswith("Check that the adapter can be trained")


@pytest.mark.parametrize("dead, finds", [(0.5, False), (0.51, True), (1.0, True)])
def test_at_the_threshold(tmp_path, dead, finds):
    trial = written(tmp_path / "run", course(0.0, *[dead] * 6))
    assert found(trial, DeadRelu()) == ({"layer_output_0": (5, 6)} if finds else {})


@pytest.mark.parametrize(
    "shares, severity",
    [([0.89] * 6, Severity.NOTE), ([0.91] * 6, Severity.WARNING), ([0.6] * 6 + [0.95], Severity.WARNING)],
)
def test_most_units_are_a_warning_at_the_step_where_they_are(tmp_path, shares, severity):
    (one,) = verdict(written(tmp_path / "run", course(0.0, *shares)), DeadRelu()).findings
    assert (one.severity, one.evidence["dead_percent"]) == (severity, pytest.approx(100 * shares[0], abs=0.01))


@pytest.mark.parametrize("first, finds", [(0.44, True), (0.46, False)])
def test_it_has_to_rise(tmp_path, first, finds):
    assert bool(found(written(tmp_path / "a", course(first, *[0.7] * 6)), DeadRelu())) == finds
    named = written(tmp_path / "b", course(first, *[0.7] * 6, name="relu1_output_0"))
    assert found(named, DeadRelu()) == {"relu1_output_0": (5, 6)}


def test_it_takes_some_steps_in_a_row_and_lasts(tmp_path):
    assert found(written(tmp_path / "a", course(0.0, *[0.7] * 4)), DeadRelu()) == {}
    assert found(written(tmp_path / "b", course(0.0, *[0.7] * 6, 0.3)), DeadRelu()) == {}
    assert found(written(tmp_path / "c", course(0.0, *[0.7] * 3, 0.3, *[0.7] * 3)), DeadRelu()) == {}


def test_zeros_by_chance_are_taken_off(tmp_path):
    # Units that are active for one of fifty elements: of 16 elements 72 percent of them have none.
    sparse = np.random.default_rng(0).random((40, 16, 400)) < 0.02
    steps = course(0.0)
    for active in sparse:
        dead = float((~active.any(0)).mean())
        assert dead > 0.6
        steps += course(dead, zero=float((~active).mean()), shape=(16, 400))
    assert found(written(tmp_path / "run", steps), DeadRelu()) == {}


def test_the_first_step_is_freed_from_chance_too(tmp_path):
    # All live, each with 0 in 95 of 100 elements: of 16 elements of a unit, 0.9526**16 = 0.46 of the units have none.
    steps = [{"layer_output_0": output(0.46, zero=0.9526)}, *course(*[0.7] * 6)]
    assert found(written(tmp_path / "run", steps), DeadRelu()) == {"layer_output_0": (5, 6)}


@pytest.mark.parametrize("more", [{"low": -0.1}, {"shape": (7, 20)}])
def test_outputs_that_are_left_out(tmp_path, more):
    assert found(written(tmp_path / "run", course(0.0, *[0.9] * 8, **more)), DeadRelu()) == {}


def test_whole_values_do_not_tell_where_channels_are(tmp_path):
    said = verdict(written(tmp_path / "run", [{"layer_output_0": np.zeros((16, 4))}] * 8), DeadRelu())
    (one,) = said.not_judged
    assert one.reason.startswith("no tensor with dead_share was saved")
    assert one.option == "add layers to --save, with --reductions statistics"


def half_dead(units, activity, count=1000):
    """An output of which so many of ten units are active in so many elements, the others in all."""
    value = np.ones((count, 10), np.float32)
    value[:, :units] = 0
    value[: round(activity * count / 100), :units] = 1
    return value


@pytest.mark.parametrize(
    "units, activity, finds", [(6, 0.0, True), (6, 0.9, True), (6, 1.0, False), (5, 0.0, False), (0, 0.0, False)]
)
def test_as_it_is_documented(tmp_path, units, activity, finds):
    trial = written(tmp_path / "run", [{"net_relu_output_0": half_dead(units, activity), "ReLU_output_0": np.zeros(3)}])
    assert met(trial, DeadRelu(base_trial=trial)) == [0] * finds
    assert met(trial, DeadRelu(base_trial=trial, tensor_regex="ReLU_output")) == [0]
    assert met(trial, DeadRelu(base_trial=trial, threshold_layer="60")) == []


def test_as_it_is_documented_from_the_share(tmp_path):
    trial = written(tmp_path / "run", course(0.5, 0.6, name="net_relu_output_0"))
    assert met(trial, DeadRelu(base_trial=trial)) == [1]


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(DeadRelu()))} == {}
