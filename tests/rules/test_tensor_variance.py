"""TensorVariance, from values and from what is stored of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness.rule_runs import found, met, verdict, written

from smd_agent.rules import TensorVariance


def of_variance(variance):
    return np.array([-1.0, 1.0]) * math.sqrt(variance)


FORMS = {
    "value": of_variance,
    "variance": lambda variance: {"variance": variance},
    "std": lambda variance: {"std": math.sqrt(variance)},
}


@pytest.mark.parametrize("form", FORMS)
def test_its_bounds(tmp_path, form):
    steps = [{"a.weight": FORMS[form](variance)} for variance in (1.0, 3.9, 4.1, 1.0, 0.26, 0.24)]
    trial = written(tmp_path / "run", steps)
    for arguments, expected in (
        ({}, []),
        ({"max_threshold": "4"}, [2]),
        ({"min_threshold": 0.25}, [5]),
        ({"max_threshold": 4, "min_threshold": 0.25}, [2, 5]),
    ):
        assert met(trial, TensorVariance(base_trial=trial, collection_names="weights", **arguments)) == expected
        assert met(trial, TensorVariance(base_trial=trial, tensor_regex="nothing", **arguments)) == []


def test_the_evidence_is_the_variance(tmp_path):
    values = np.random.default_rng(0).normal(size=(7, 5)) * 9
    said = verdict(written(tmp_path / "run", [{"a.weight": values}]), TensorVariance())
    (one,) = said.findings
    assert one.evidence["variance"] == pytest.approx(((values - values.mean()) ** 2).mean())


def test_asked_by_name_it_has_the_bounds_of_the_example(tmp_path):
    steps = [{"a.weight": of_variance(variance), "b": of_variance(100)} for variance in (1, 11, 9, 0.9e-5, 1.1e-5)]
    assert found(written(tmp_path / "run", steps), TensorVariance()) == {"a.weight": (1, 3)}
    assert TensorVariance.only_by_name
