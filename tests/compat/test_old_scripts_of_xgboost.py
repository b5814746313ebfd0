"""An XGBoost script for the old library, unedited, on the name ``smdebug`` that is ours."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("xgboost")

from harness.old_scripts import missing_names, run_by_library, run_old_script
from harness.runner import Runner

from smd_agent.analysis.trial import create_trial

OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    return Runner(tmp_path_factory.mktemp("xgboost"), ("xgboost",))


@pytest.fixture(scope="module")
def rounds(runner):
    return run_old_script(runner, "xgboost_rounds.py")


def test_a_hook_of_the_script_takes_the_place_of_the_agents(rounds):
    rounds.assert_alike()
    assert rounds.trial.steps() == [0, 2, 4, 6]
    assert rounds.trial.tensor("predictions").value(6).tolist() == pytest.approx(
        [float(number) for number in rounds.agent.stdout.strip("[]\n").split(",")]
    )


@pytest.mark.skipif(not OLD_PYTHON, reason="SMDEBUG_PYTHON names no interpreter with the old smdebug")
def test_the_library_itself_saves_the_same_names_at_the_same_steps(rounds, tmp_path):
    run_by_library(OLD_PYTHON, "xgboost_rounds.py", tmp_path / "run", framework="xgboost")
    theirs, ours = create_trial(str(tmp_path / "run")), rounds.trial
    assert ours.steps() == theirs.steps()
    for name in ("metrics", "hyperparameters", "predictions", "labels"):
        assert ours.tensor_names(collection=name) == theirs.tensor_names(collection=name) != []
    # Which features come up depends on the release of XGBoost.
    for trial in (ours, theirs):
        kinds = {name.split("/")[1] for name in trial.tensor_names(collection="feature_importance")}
        assert kinds == {"weight", "gain", "cover", "total_gain", "total_cover"}


def test_every_name_can_be_imported(runner):
    assert missing_names(runner, "smdebug.xgboost") == []
