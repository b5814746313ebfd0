"""Patches of XGBoost and wrappers that a program puts around them, under every name that they replace."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("xgboost")
pytest.importorskip("sklearn")

from harness.compare import Both, assert_same_values, assert_untouched, run_both, saved_values
from harness.runner import SUBJECTS

from smd_agent.analysis.trial import create_trial

SCRIPT = SUBJECTS / "xgboost/wrapped.py"

CONFIG = {
    "HookParameters": {"save_interval": 1},
    "CollectionConfigurations": [{"CollectionName": name} for name in ("metrics", "trees", "feature_importance")],
}


@pytest.fixture(scope="module")
def unwrapped_run(module_runner):
    """The folder of a run in which nobody wraps anything."""
    runner = module_runner("unwrapped")
    result = runner.by_variable(SCRIPT, "none", config=CONFIG, SMD_AGENT_STRICT="1")
    assert result.returncode == 0, result.stderr
    assert "replaced True" in result.stderr
    return runner.folder / "run"


@pytest.fixture
def unwrapped(unwrapped_run):
    """What is saved where nobody wraps anything."""
    found = saved_values(create_trial(str(unwrapped_run)))
    # Four trainings of two rounds, four times over.
    assert {step for *_, step in found} == set(range(32))
    return found


@pytest.mark.parametrize("way", ["alike", "other"])
def test_wrappers_count_as_without_the_agent_and_change_nothing_that_is_saved(way, runner, unwrapped):
    both = run_both(runner, SCRIPT, way, config=CONFIG, strict=True)
    # On stderr the script tells whether anything is replaced.
    assert_untouched(both, stderr=False)
    assert "'first xgboost.sklearn.train', 3)" in both.plain.stdout
    assert "not saved" not in both.agent.stderr
    assert_same_values(saved_values(both.trial), unwrapped)


@pytest.mark.parametrize("way", ["alike", "other"])
def test_wrappers_that_were_there_before_the_agent_stay_and_count(way, runner, unwrapped, tmp_path):
    plain = runner.plain(SCRIPT, way, os.devnull, USE_SMDEBUG="0")
    ours = runner.plain(SCRIPT, way, runner.hook_file("run", CONFIG), SMD_AGENT_STRICT="1")
    both = Both(plain, ours, tmp_path / "run")
    assert_untouched(both, stderr=False)
    if way == "alike":
        assert "not saved" not in ours.stderr
        expected = {(name, mode, step): value for (name, mode, step), value in unwrapped.items() if step < 16}
        assert_same_values(saved_values(both.trial), expected)
    else:
        # What they take is not known, so they are left alone.
        for name in ("train", "cv"):
            assert ours.stderr.count(f"xgboost.training.{name} was wrapped before the agent came") == 1
