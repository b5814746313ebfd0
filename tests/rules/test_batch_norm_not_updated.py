"""BatchNormNotUpdated, on running statistics under the names that Keras and tapes give them."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.rules import BatchNormNotUpdated
from smd_agent.rules.finding import Severity

MEAN = "{}weights/net/norm/moving_mean:0"
VARIANCE = "{}weights/net/norm/moving_variance:0"


def run_of(written, mean=lambda step: 0.0, variance=lambda step: 1.0, update=lambda step: 0.1, steps=5, layer=""):
    run = written(weights="weights/", updates="^update/")
    for step in range(steps):
        run.step(
            **{
                MEAN.format(layer): np.full(3, mean(step), np.float32),
                VARIANCE.format(layer): np.full(3, variance(step), np.float32),
                f"{layer}weights/net/norm/gamma:0": np.full(3, 0.3 * step, np.float32),
                "update/net/norm/gamma": np.float64(update(step)),
                "update/net/norm_1/gamma": np.float64(1),
            }
        )
    return run.ended()


@pytest.mark.parametrize("layer", ["", "norm/"])
def test_statistics_that_stay_as_they_were_made(written, layer):
    (found,) = run_of(written, layer=layer).findings(BatchNormNotUpdated())
    assert (found.severity, found.tensor) == (Severity.PROBLEM, MEAN.format(layer))
    assert (found.first_step, found.steps) == (4, 1)
    assert found.evidence == {"layers": 1, "of": 1}


def test_one_step_less_than_it_takes(written):
    assert run_of(written).findings(BatchNormNotUpdated(patience=6)) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"mean": lambda step: 1e-6 * step},
        {"variance": lambda step: 1 + 1e-6 * step},
        {"mean": lambda step: 0.2, "variance": lambda step: 1.3},
        {"update": lambda step: 0.0},
        {"update": lambda step: float(step != 2)},
    ],
    ids=["mean moves", "variance moves", "of an earlier training", "frozen", "not in a row"],
)
def test_what_is_none(written, changed):
    assert run_of(written, **changed).findings(BatchNormNotUpdated()) == []


def test_a_run_without_running_statistics_is_not_for_it(clean):
    for run in clean.values():
        assert run.verdict(BatchNormNotUpdated()).not_for_it == ["BatchNormNotUpdated"]
