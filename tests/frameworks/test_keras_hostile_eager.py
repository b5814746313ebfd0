"""Keras that runs eagerly from a loader of the program's: overrides are used as often as without the agent."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version

import pytest

if importlib.util.find_spec("keras") is None:
    pytest.skip("there is no Keras", allow_module_level=True)

from harness.compare import Both, assert_untouched
from harness.keras_ways import variables_of
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys

PROGRAM = SUBJECTS / "keras/hostile_eager.py"
BACKENDS = [
    name
    for name, module in (("tensorflow", "tensorflow"), ("torch", "torch"))
    if importlib.util.find_spec(module) and (name == "tensorflow" or not version("keras").startswith("2"))
]


@pytest.fixture(scope="module", params=BACKENDS)
def runs(request, module_runner):
    """The program's runs, and how often each override was used, without the agent and with it."""
    runner = module_runner(request.param)
    counts = []

    def counted(result):
        counts.append((runner.folder / "calls.txt").read_text().splitlines() if not result.returncode else [])
        return result

    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    variables = variables_of(request.param)
    plain = counted(runner.plain(PROGRAM, **variables))
    agent = counted(runner.by_variable(PROGRAM, config=config, SMD_AGENT_STRICT="1", **variables))
    return Both(plain, agent, runner.folder / "run"), *counts


def test_the_training_and_what_is_copied_of_it_are_the_same(runs):
    assert_untouched(runs[0], stderr=False)
    assert not any("failed" in line for line in runs[0].said), runs[0].said


def test_overrides_are_used_as_often_as_without(runs):
    _, plain, agent = runs
    assert plain
    assert agent == plain


def test_all_is_captured(runs):
    trial = runs[0].trial
    assert [len(trial.steps(mode=mode)) for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT)] == [6, 9, 3]
    gradients = trial.tensor_names(collection="gradients")
    assert len(gradients) == 4
    for collection in ("gradients", "weights", "losses"):
        names = trial.tensor_names(collection=collection)
        assert any(trial.tensor(name).steps(mode=ModeKeys.TRAIN) == [*range(6)] for name in names), collection
