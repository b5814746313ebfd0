"""PoorWeightInitialization: each of its three signs, at the threshold and beside it."""

from __future__ import annotations

import numpy as np
import pytest
from harness.rule_runs import found, met, verdict, written

from smd_agent.rules import PoorWeightInitialization


def step(loss=None, variances=(1.0, 2.0), span=1.0, **more):
    tensors = {f"net_relu{place}_input_0": {"std": np.sqrt(of)} for place, of in enumerate(variances)}
    tensors["gradient/a.weight"] = np.linspace(-span, span, 201)
    tensors["gradient/b.weight"] = np.linspace(-5, 5, 201)
    return {**tensors, **({} if loss is None else {"loss": np.float32(loss)}), **more}


def falling(count, **more):
    return [step(loss=10.0 - place, **more) for place in range(count)]


def documented(trial, **arguments):
    regex = {"activation_inputs_regex": "relu._input"}
    return met(trial, PoorWeightInitialization(base_trial=trial, **regex, **arguments))


def test_nothing_of_it(tmp_path):
    assert documented(written(tmp_path / "run", falling(12))) == []


@pytest.mark.parametrize("ratio, finds", [(10.1, True), (9.9, False)])
def test_variances(tmp_path, ratio, finds):
    trial = written(tmp_path / "run", falling(3, variances=(0.3, 0.3 * ratio, 0.4)))
    assert documented(trial) == [0, 1, 2] * finds
    assert documented(trial, threshold="9") == [0, 1, 2]
    assert met(trial, PoorWeightInitialization(base_trial=trial)) == []
    said = verdict(trial, PoorWeightInitialization(threshold=9))
    assert [one.tensor for one in said.findings] == ["net_relu1_input_0"]
    assert said.findings[0].evidence["variance_ratio"] == pytest.approx(ratio)


def test_variances_of_whole_values(tmp_path):
    random = np.random.default_rng(0)
    small, large = random.normal(size=(9, 7)), 5 * random.normal(size=(9, 7))
    trial = written(tmp_path / "run", [{"relu1_input_0": small, "relu2_input_0": large}])
    (one,) = verdict(trial, PoorWeightInitialization()).findings
    assert one.evidence["variance_ratio"] == pytest.approx(large.var() / small.var())


# From the 5th to the 95th percentile there are 0.9 of the whole span.
@pytest.mark.parametrize("reach, finds", [(0.00099, True), (0.00101, False)])
def test_gradients(tmp_path, reach, finds):
    trial = written(tmp_path / "run", falling(2, span=reach / 0.9 / 2))
    assert documented(trial) == [0, 1] * finds
    assert documented(trial, distribution_range=0.002) == [0, 1]
    said = verdict(trial, PoorWeightInitialization(distribution_range=0.002))
    assert [(one.tensor, one.evidence["range"]) for one in said.findings] == [
        ("gradient/a.weight", pytest.approx(reach))
    ]


def test_gradients_from_percentiles(tmp_path):
    trial = written(tmp_path / "run", [{"gradient/a.weight": {"p5": 0.1, "p95": high}} for high in (0.1009, 0.1011)])
    assert documented(trial) == [0]


@pytest.mark.parametrize("stays, expected", [(5, [5]), (4, [])])
def test_losses(tmp_path, stays, expected):
    losses = [3.0, *[3.0, 4.0, 3.5, 3.0, 3.1][:stays], 2.0, 2.5]
    trial = written(tmp_path / "run", [step(loss=loss) for loss in losses])
    assert documented(trial) == expected
    assert documented(trial, patience=6) == []


def test_only_the_first_steps_are_looked_at(tmp_path):
    trial = written(tmp_path / "run", [*falling(10), *falling(3, variances=(1.0, 99.0))])
    assert documented(trial) == []
    assert documented(trial, steps="11") == [10]


def test_it_is_asked_by_name_only(tmp_path):
    assert PoorWeightInitialization.only_by_name
    assert (
        found(written(tmp_path / "run", [{"ReLU_input_0": {"std": 1.0}} for _ in range(3)]), PoorWeightInitialization())
        == {}
    )
