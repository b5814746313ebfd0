"""Patches of XGBoost and wrappers that a program puts around them, under every name that they replace."""

from __future__ import annotations

import hashlib
import os

import pytest

pytest.importorskip("xgboost")
pytest.importorskip("sklearn")

from smd_agent.analysis.trial import create_trial

CONFIG = {
    "HookParameters": {"save_interval": 1},
    "CollectionConfigurations": [{"CollectionName": name} for name in ("metrics", "trees", "feature_importance")],
}


def saved(folder):
    """Digests of all values by name and step."""
    trial = create_trial(str(folder))
    return {
        (name, step): hashlib.sha256(repr(trial.tensor(name).value(step).tolist()).encode()).hexdigest()
        for name in trial.tensor_names()
        for step in trial.tensor(name).steps()
    }


@pytest.fixture(scope="module")
def unwrapped_run(module_runner):
    """The folder of a run in which nobody wraps anything."""
    runner = module_runner("unwrapped")
    result = runner.by_variable(runner.script("xgboost_wrapped.py"), "none", config=CONFIG, SMD_AGENT_STRICT="1")
    assert result.returncode == 0, result.stderr
    assert "replaced True" in result.stderr
    return runner.folder / "run"


@pytest.fixture
def unwrapped(unwrapped_run):
    """What is saved where nobody wraps anything."""
    found = saved(unwrapped_run)
    # Four trainings of two rounds, four times over.
    assert {step for _, step in found} == set(range(32))
    return found


@pytest.mark.parametrize("way", ["alike", "other"])
def test_wrappers_count_as_without_the_agent_and_change_nothing_that_is_saved(way, runner, unwrapped, tmp_path):
    script = runner.script("xgboost_wrapped.py")
    plain = runner.plain(script, way)
    ours = runner.by_variable(script, way, config=CONFIG, SMD_AGENT_STRICT="1")
    assert (plain.returncode, ours.returncode) == (0, 0), ours.stderr
    assert ours.stdout == plain.stdout
    assert "'first xgboost.sklearn.train', 3)" in plain.stdout
    assert "not saved" not in ours.stderr
    assert saved(tmp_path / "run") == unwrapped


@pytest.mark.parametrize("way", ["alike", "other"])
def test_wrappers_that_were_there_before_the_agent_stay_and_count(way, runner, unwrapped, tmp_path):
    script = runner.script("xgboost_wrapped.py")
    plain = runner.plain(script, way, os.devnull, USE_SMDEBUG="0")
    ours = runner.plain(script, way, runner.hook_file("run", CONFIG), SMD_AGENT_STRICT="1")
    assert (plain.returncode, ours.returncode) == (0, 0), ours.stderr
    assert ours.stdout == plain.stdout
    if way == "alike":
        assert "not saved" not in ours.stderr
        assert saved(tmp_path / "run") == {key: value for key, value in unwrapped.items() if key[1] < 16}
    else:
        # What they take is not known, so they are left alone.
        for name in ("train", "cv"):
            assert ours.stderr.count(f"xgboost.training.{name} was wrapped before the agent came") == 1
