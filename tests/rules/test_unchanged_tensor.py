"""UnchangedTensor, on losses that never move, and as smdebug documents it."""

from __future__ import annotations

import numpy as np
import pytest
from harness.rule_runs import found, met, verdict, written

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import UnchangedTensor


def losses(*values):
    return [{"loss": np.float32(value)} for value in values]


def test_a_loss_that_never_moves(tmp_path):
    assert found(written(tmp_path / "a", losses(*[0.7] * 12)), UnchangedTensor()) == {"loss": (9, 11)}
    assert found(written(tmp_path / "b", losses(*[0.7] * 10)), UnchangedTensor()) == {"loss": (9, 9)}


@pytest.mark.parametrize(
    "values",
    [
        [0.7] * 11 + [np.nextafter(np.float32(0.7), np.float32(1))],
        [0.8] + [0.7] * 20,
        [0.0] * 20,
        [np.nan] * 20,
        np.linspace(0.7, 0.7001, 20),
    ],
)
def test_losses_that_move_or_are_0(tmp_path, values):
    assert found(written(tmp_path / "run", losses(*values)), UnchangedTensor()) == {}


@pytest.mark.parametrize(
    "metric, finds",
    [("logloss", True), ("error", False), ("merror", False), ("error@0.3", False), ("error_rate", True)],
)
def test_a_share_of_rows_may_stand_still(tmp_path, metric, finds):
    trial = written(tmp_path / "run", [{"test-" + metric: np.float32(0.03)}] * 12, ModeKeys.GLOBAL)
    assert bool(found(trial, UnchangedTensor(collection_names="all"))) == finds


def test_too_few_steps_are_no_judgement(tmp_path):
    (one,) = verdict(written(tmp_path / "run", losses(*[0.7] * 9)), UnchangedTensor()).not_judged
    assert one.reason == "it takes 10 steps to judge, and there are 9"


def test_statistics_alone_do_not_tell(tmp_path):
    trial = written(tmp_path / "run", [{"loss": {"mean": 0.5}}] * 12)
    (one,) = verdict(trial, UnchangedTensor()).not_judged
    assert one.option == "add losses to --save, with --raw"


def test_as_it_is_documented(tmp_path):
    values = (1, 1, 1, 2, 2, 2 * (1 + 0.9e-5), 2 * (1 + 0.9e-5), 3, 3 * (1 + 1.2e-5), 3, np.nan, np.nan, np.nan)
    trial = written(tmp_path / "run", [{"x": np.array([5.0, value])} for value in values], every=10)
    for arguments, expected in (
        ({}, [20, 50, 60]),
        ({"rtol": "1e-4"}, [20, 50, 60, 90]),
        ({"rtol": 0, "atol": 0}, [20]),
        ({"rtol": 0, "atol": 1e-3}, [20, 50, 60, 90]),
        ({"equal_nan": "True"}, [20, 50, 60, 120]),
        ({"num_steps": 2}, [10, 20, 40, 50, 60]),
        ({"num_steps": 4}, [60]),
    ):
        assert met(trial, UnchangedTensor(base_trial=trial, tensor_regex="^x$", **arguments)) == expected, arguments
    assert met(trial, UnchangedTensor(base_trial=trial, collection_names="losses")) == []


def test_steps_at_which_it_was_not_saved_are_skipped(tmp_path):
    steps = [{"x": np.ones(2)}, {"y": np.ones(1)}, {"x": np.ones(2)}, {"x": np.ones(2)}]
    trial = written(tmp_path / "run", steps)
    assert met(trial, UnchangedTensor(base_trial=trial, tensor_regex="^x$")) == [3]


def test_another_shape_is_a_change(tmp_path):
    trial = written(tmp_path / "run", [{"x": np.ones(size)} for size in (2, 2, 1, 1, 1)])
    assert met(trial, UnchangedTensor(base_trial=trial, tensor_regex="^x$")) == [4]


def test_modes_are_told_apart(tmp_path):
    steps, modes = losses(*[0.7, 0.3] * 3), [ModeKeys.TRAIN, ModeKeys.EVAL] * 3
    trial = written(tmp_path / "run", steps, modes)
    assert met(trial, UnchangedTensor(base_trial=trial, collection_names="losses")) == [4, 5]


def test_evaluations_are_left_out(tmp_path):
    trial = written(tmp_path / "run", losses(*[0.7] * 12), ModeKeys.EVAL)
    assert verdict(trial, UnchangedTensor()).findings == []


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(UnchangedTensor()))} == {}
