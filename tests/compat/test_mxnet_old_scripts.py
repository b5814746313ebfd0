"""A Gluon script for the old library, unedited, on the name ``smdebug`` that is ours."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("mxnet")

from harness.old_scripts import missing_names, names_the_library_lacks, run_by_library, run_old_script
from harness.runner import Runner

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

OLD_PYTHON = os.environ.get("SMDEBUG_MXNET_PYTHON", "")
WITH_SMDEBUG = pytest.mark.skipif(
    not OLD_PYTHON, reason="SMDEBUG_MXNET_PYTHON does not name an interpreter that has MXNet and the original smdebug"
)


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    return Runner(tmp_path_factory.mktemp("mxnet"), ("mxnet",))


@pytest.fixture(scope="module")
def loop(runner):
    return run_old_script(runner, "gluon_loop.py")


def test_a_hook_of_the_script_takes_the_place_of_the_agents(loop):
    loop.assert_alike()
    assert loop.trial.tensor("gradient/net_dense0_weight").steps(mode=ModeKeys.TRAIN) == [0, 2, 4]
    assert loop.trial.tensor("scalar/number").steps(mode=ModeKeys.TRAIN) == [*range(5)]


@WITH_SMDEBUG
def test_the_library_itself_saves_the_same_names_at_the_same_steps(loop, tmp_path):
    run_by_library(OLD_PYTHON, "gluon_loop.py", tmp_path / "run", framework="mxnet")
    theirs, ours = create_trial(str(tmp_path / "run")), loop.trial
    for name in ("weights", "biases", "gradients", "losses", "first"):
        names = theirs.tensor_names(collection=name)
        assert ours.tensor_names(collection=name) == names != []
        for tensor in names:
            mode = ModeKeys.TRAIN
            assert (tensor, ours.tensor(tensor).steps(mode=mode)) == (tensor, theirs.tensor(tensor).steps(mode=mode))


def test_every_name_can_be_imported(runner):
    assert missing_names(runner, "smdebug.mxnet") == []


@WITH_SMDEBUG
def test_no_name_is_made_up(tmp_path):
    assert names_the_library_lacks(OLD_PYTHON, tmp_path, "smdebug.mxnet", framework="mxnet") == []
