"""Classes of the program's that override what they can, and are copied, pickled and saved while they train."""

from __future__ import annotations

import pytest
from harness.compare import Both, assert_untouched
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys

PROGRAM = SUBJECTS / "keras/overriding.py"
# Keras 2 looks at the functions that it keeps for the steps of a model while it saves the model.
NOT_COMPARED = ("_manual_tracking", "_self_setattr_tracking")
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(scope="module")
def runs(module_runner):
    """The program's run without the agent and with it, each with how often every override was used."""
    runner = module_runner("overriding")
    counts = []

    def counted(result):
        lines = (runner.folder / "calls.txt").read_text().splitlines()
        counts.append([line for line in lines if not any(name in line for name in NOT_COMPARED)])
        return result

    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    plain = counted(runner.plain(PROGRAM, **QUIET))
    agent = counted(runner.by_variable(PROGRAM, config=config, SMD_AGENT_STRICT="1", **QUIET))
    return Both(plain, agent, runner.folder / "run"), *counts


def test_the_training_is_the_same(runs):
    both = runs[0]
    assert_untouched(both, stderr=False)
    assert not any("failed" in line or "cannot" in line for line in both.said), both.said


def test_overrides_are_used_as_often_as_without(runs):
    _, plain, agent = runs
    assert agent == plain


def test_all_is_captured(runs):
    trial = runs[0].trial
    assert [len(trial.steps(mode=mode)) for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)] == [6, 9, 1]
    gradients = trial.tensor_names(collection="gradients")
    assert len(gradients) == 5
    assert all(trial.tensor(name).steps(mode=ModeKeys.TRAIN) == list(range(6)) for name in gradients)
    for collection in ("weights", "losses", "updates", "optimizer", "parameters", "layers"):
        assert trial.tensor_names(collection=collection), collection
