"""WeightUpdateRatio, on updates out of bounds, and as smdebug documents it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from harness.rule_runs import found, met, verdict, written
from torch import nn

from smd_agent.rules import WeightUpdateRatio

A, B = "update_ratio/a.weight", "update_ratio/b.weight"


def course(ratios, other=1e-3, shape=(8, 6)):
    return [{A: np.float64(ratio), "a.weight": {"mean": 0.0, "shape": shape}, B: np.float64(other)} for ratio in ratios]


def at_rate(rate):
    def training(capture):
        model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
        capture(model)
        optimizer = torch.optim.Adam(model.parameters(), rate)
        for _ in range(25):
            optimizer.zero_grad()
            (model(torch.randn(16, 6)) - 1).pow(2).mean().backward()
            optimizer.step()

    return training


def test_a_rate_that_is_far_too_low(trained):
    (one,) = trained(at_rate(1e-9)).findings(WeightUpdateRatio())
    assert (one.tensor, one.first_step, one.last_step, one.steps) == (None, 0, 24, 25)
    assert 0 < one.evidence["largest_ratio"] < 1e-7
    assert "too low" in one.cause
    assert trained(at_rate(1e-3)).findings(WeightUpdateRatio()) == []


@pytest.mark.parametrize("ratio, finds", [(0.5, False), (0.51, True)])
def test_updates_that_are_too_large(tmp_path, ratio, finds):
    trial = written(tmp_path / "run", course([ratio] * 22))
    # Ten steps are left out, and ten in a row are wanted.
    assert found(trial, WeightUpdateRatio()) == ({"a.weight": (19, 21)} if finds else {})


@pytest.mark.parametrize("ratios", [[0.9] * 19, [0.9] * 15 + [0.1] + [0.9] * 9, [1.0] * 10 + [0.4] * 20])
def test_it_takes_many_steps_in_a_row(tmp_path, ratios):
    assert found(written(tmp_path / "run", course(ratios)), WeightUpdateRatio()) == {}


def test_vectors_are_left_out(tmp_path):
    assert found(written(tmp_path / "run", course([0.9] * 30, shape=(8,))), WeightUpdateRatio()) == {}


@pytest.mark.parametrize(
    "ratios, other, finds",
    [
        ([0.9e-7] * 12, 1e-9, True),
        ([1.1e-7] * 12, 1e-9, False),
        ([0.9e-7] * 12, 1e-3, False),
        ([1e-3] * 2 + [0.9e-7] * 12, 1e-9, False),
        ([0.0] * 12, 0.0, False),
        ([0.9e-7] * 9, 1e-9, False),
        ([np.nan] + [0.9e-7] * 12, 1e-9, False),
    ],
)
def test_updates_that_are_lost(tmp_path, ratios, other, finds):
    said = verdict(written(tmp_path / "run", course(ratios, other)), WeightUpdateRatio())
    assert [(one.tensor, one.first_step, one.last_step) for one in said.findings] == [(None, 0, 11)] * finds


def weights(*factors):
    value = np.random.default_rng(0).normal(size=(4, 3))
    return [{"a.weight": value * factor, "b": value} for factor in factors]


def test_as_it_is_documented(tmp_path):
    # |change| / |earlier|: 10.1, 0.93, 0, 0.9e-8, 2e-8.
    trial = written(tmp_path / "run", weights(1, 11.1, 0.8, 0.8, 0.8 * (1 + 0.9e-8), 0.8 * (1 + 2.9e-8)), every=10)
    for arguments, expected in (
        ({}, [10, 30, 40]),
        ({"large_threshold": "10.2"}, [30, 40]),
        ({"large_threshold": 0.9}, [10, 20, 30, 40]),
        ({"small_threshold": 3e-8}, [10, 30, 40, 50]),
        ({"epsilon": 1e12}, [10, 20, 30, 40, 50]),
        ({"num_steps": "10"}, [10, 30, 40]),
        ({"num_steps": 20}, [10, 40]),
        ({"num_steps": 9}, []),
    ):
        assert met(trial, WeightUpdateRatio(base_trial=trial, **arguments)) == expected, arguments


def test_the_ratio_is_that_of_the_norms(tmp_path):
    random = np.random.default_rng(1)
    first, then = random.normal(size=(2, 5, 4)).astype(np.float32)
    trial = written(tmp_path / "run", [{"a.weight": first}, {"a.weight": then}])
    said = verdict(trial, WeightUpdateRatio(patience=1, large_threshold=0.01))
    expected = np.sqrt(((then - first) ** 2).sum()) / np.sqrt((first**2).sum())
    assert said.findings[0].evidence["ratio"] == pytest.approx(expected, rel=1e-6)


def test_statistics_of_weights_do_not_tell(tmp_path):
    trial = written(tmp_path / "run", [{"a.weight": {"l2": 1.0}}] * 3)
    (one,) = verdict(trial, WeightUpdateRatio(patience=1)).not_judged
    assert one.option == "add weights to --save, with --raw"


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(WeightUpdateRatio()))} == {}
