"""Classes of an XGBoost program's that override all that they can: captured all the same, and called no more often."""

from __future__ import annotations

import numpy as np
import pytest

xgboost = pytest.importorskip("xgboost")
pytest.importorskip("sklearn")

from harness.compare import assert_untouched, noted, run_both
from harness.runner import SUBJECTS

PROGRAM = SUBJECTS / "xgboost/hostile.py"
ROUNDS = 3
# XGBoost 1 has no SHAP values of quantile matrices.
NOT_EXPLAINED = ("quantile_matrix", "iterator") if xgboost.__version__.startswith("1.") else ()


@pytest.fixture(scope="module")
def hostile(module_runner):
    """The program's runs, which print how often each override was called, and what it noted in the plain one."""
    runner = module_runner("hostile")
    plain = runner.plain(PROGRAM, str(runner.folder / "notes.npz"))
    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    both = run_both(runner, PROGRAM, plain=plain, config=config, strict=True)
    return both, noted(runner.folder / "notes.npz")


def test_trainings_are_the_same_and_overrides_are_called_as_often(hostile):
    assert_untouched(hostile[0])


def test_every_round_of_every_training_is_saved(hostile):
    both, notes = hostile
    assert len(notes) > 10
    assert both.trial.steps() == [*range(ROUNDS * len(notes))]


def test_what_is_saved_is_what_the_models_say(hostile):
    both, notes = hostile
    for number, (scene, expected) in enumerate(notes.items()):
        step = ROUNDS * number + ROUNDS - 1
        np.testing.assert_array_equal(both.trial.tensor("predictions").value(step), expected, err_msg=scene)


def test_data_metrics_trees_and_shap_values_are_saved_of_all(hostile):
    both, notes = hostile
    for number, scene in enumerate(notes):
        steps = {*range(ROUNDS * number, ROUNDS * number + ROUNDS)}
        names = ["trees/Gain", "full_shap/matrix", "average_shap/f0", "feature_importance/gain/f0", "labels"]
        if scene in NOT_EXPLAINED:
            names = [name for name in names if "shap" not in name]
        for name in [*names, "hyperparameters/max_depth"]:
            assert steps <= {*both.trial.tensor(name).steps()}, (scene, name)
        first = min(steps)
        assert both.trial.tensor("data_facts/labels/train/rows").value(first) == [180], scene


def test_nothing_is_said_but_what_holds_of_the_trainings(hostile):
    both, _ = hostile
    assert [line for line in both.said if "failed" in line] == []
