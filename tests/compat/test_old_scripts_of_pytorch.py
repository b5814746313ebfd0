"""PyTorch scripts for the old library, and what reads their runs: unedited, on the name ``smdebug`` that is ours."""

from __future__ import annotations

import json
import os

import pytest

pytest.importorskip("torch")

from harness.old_scripts import (
    SCRIPTS,
    beside_names,
    missing_names,
    names_the_library_lacks,
    run_by_file,
    run_by_library,
    run_old_script,
)
from harness.runner import Runner

from smd_agent.alias.table import MODULES
from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")
WITH_SMDEBUG = pytest.mark.skipif(not OLD_PYTHON, reason="SMDEBUG_PYTHON names no interpreter with the old smdebug")
# Those of no framework.
COMMON = sorted({".".join(name.split(".")[:2]) for name, served in MODULES.items() if not served.of_framework})


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    return Runner(tmp_path_factory.mktemp("pytorch"), ("torch",))


@pytest.fixture(scope="module")
def loop(runner):
    return run_old_script(runner, "pytorch_loop.py")


@pytest.fixture(scope="module")
def their_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("theirs") / "run"
    run_by_library(OLD_PYTHON, "pytorch_loop.py", folder, framework="pytorch")
    return folder


def test_a_hook_of_the_script_takes_the_place_of_the_agents(loop):
    loop.assert_alike()
    assert loop.trial.steps(mode=ModeKeys.TRAIN) == [*range(0, 8, 2)]
    assert loop.trial.steps(mode=ModeKeys.EVAL) == [*range(8)]
    assert loop.trial.tensor("scalar/first_loss").steps(mode=ModeKeys.TRAIN) == [0, 4]


def test_a_hook_made_by_the_agents_file_is_the_agents(runner):
    config = {
        "HookParameters": {"save_interval": 2, "include_regex": "ce_loss"},
        "CollectionConfigurations": [{"CollectionName": "gradients"}],
    }
    ran = run_by_file(runner, "pytorch_by_file.py", config)
    ran.assert_alike()
    assert ran.agent.stdout.startswith("one hook: True True\n")
    assert ran.trial.steps(mode=ModeKeys.TRAIN) == [0, 2, 4]
    assert {"ce_loss_output_0", "gradient/Sequential_0.weight"} <= {*ran.trial.tensor_names()}


def test_with_the_switch_off_a_script_with_a_hook_runs_and_saves_nothing(runner, loop):
    # Where a run has ended, a new hook would be refused.
    for door, folder in ((runner.by_variable, loop.run), (runner.plain, runner.folder / "off")):
        off = door(SCRIPTS / "pytorch_loop.py", str(folder), USE_SMDEBUG="0")
        assert (off.returncode, off.stdout) == (0, loop.agent.stdout), off.stderr
        assert off.stderr == "smd_agent: USE_SMDEBUG is off: the program's own hook saves nothing\n"
    assert not (runner.folder / "off").exists()
    # Without the file that has to be there otherwise.
    off = runner.plain(SCRIPTS / "pytorch_by_file.py", USE_SMDEBUG="0")
    assert (off.returncode, off.stdout.splitlines()[0]) == (0, "one hook: True True"), off.stderr


@pytest.fixture(scope="module")
def answers(runner, loop):
    read = runner.by_variable(SCRIPTS / "read_run.py", str(loop.run))
    assert read.returncode == 0, read.stderr
    return read.stdout


def test_what_reads_a_run_reads_it(runner, loop, answers):
    alone = runner.plain(beside_names(runner, "read_run.py"), str(loop.run))
    assert alone.returncode == 0, alone.stderr
    assert alone.stdout == answers
    told = json.loads(answers)
    assert (told["missing"], told["met"], told["end"]) == (
        "TensorUnavailable",
        "RuleEvaluationConditionMet",
        "NoMoreData",
    )
    assert len(told["names"]["gradients"]) == 4


@WITH_SMDEBUG
def test_the_library_itself_reads_the_same(loop, answers):
    theirs = run_by_library(OLD_PYTHON, "read_run.py", loop.run, framework="pytorch")
    assert json.loads(theirs) == json.loads(answers)


@WITH_SMDEBUG
def test_the_library_itself_saves_the_same_names_at_the_same_steps(loop, their_run):
    theirs, ours = create_trial(str(their_run)), loop.trial
    assert len(theirs.tensor_names()) > 10
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
        assert ours.steps(mode=mode) == theirs.steps(mode=mode)
        for name in theirs.tensor_names(mode=mode):
            assert (name, ours.tensor(name).steps(mode=mode)) == (name, theirs.tensor(name).steps(mode=mode))
    for name in ("weights", "biases", "gradients", "losses", "relu"):
        assert ours.tensor_names(collection=name) == theirs.tensor_names(collection=name)


def test_every_name_can_be_imported(runner):
    assert missing_names(runner, *COMMON, "smdebug.pytorch") == []


@WITH_SMDEBUG
def test_no_name_is_made_up(tmp_path):
    packages = (*COMMON, "smdebug.pytorch", "smdebug.xgboost")
    assert names_the_library_lacks(OLD_PYTHON, tmp_path, *packages, framework="pytorch") == []
