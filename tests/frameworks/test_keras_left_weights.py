"""The weights as `fit` leaves them, which are in the run's last step of training."""

from __future__ import annotations

import numpy as np
import pytest

keras = pytest.importorskip("keras")
pytest.importorskip("tensorflow")

from harness.compare import assert_untouched, run_both
from harness.keras_ways import QUIET
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys

SCRIPT = SUBJECTS / "keras/left_weights.py"
CONFIG = {
    "HookParameters": {"save_interval": 10, "save_last": True},
    "CollectionConfigurations": [{"CollectionName": "weights"}, {"CollectionName": "biases"}],
}
ENDS = ("error", "exit", "SIGINT", "SIGTERM")
TRAIN = ModeKeys.TRAIN


@pytest.fixture(params=["tensorflow", "torch"] if hasattr(keras, "ops") else ["tensorflow"])
def run(request, runner):
    def run_with(*words, config=CONFIG):
        both = run_both(
            runner,
            SCRIPT,
            *words,
            config=config,
            strict=True,
            KERAS_BACKEND=request.param,
            OMP_NUM_THREADS="1",
            **QUIET,
        )
        assert_untouched(both, code=None, stderr=False)
        return both

    return run_with


def weights_in(trial, step):
    """The values that a training step has, by the parts of the names that Keras's paths have, too."""
    names = [name for name in trial.tensor_names(step=step, mode=TRAIN) if "/weights/" in name]
    return {name.rpartition(":")[0].split("/weights/")[1]: trial.tensor(name).value(step, mode=TRAIN) for name in names}


def left_in(runner, trial, step):
    """Assert that a step has the weights that the program has left."""
    found = weights_in(trial, step)
    with np.load(runner.folder / "weights.npz") as left:
        assert len(left.files) == 4
        for name, value in left.items():
            (mine,) = [one for path, one in found.items() if path.endswith(name)]
            assert np.array_equal(mine, value), name


@pytest.mark.parametrize("words", [(), ("--function",), ("--validation",)])
def test_the_step_behind_the_last_one_has_the_weights_that_are_left(runner, run, words):
    both = run(*words)
    assert both.plain.returncode == 0
    # Three epochs of five steps.
    assert both.trial.steps(mode=TRAIN)[-1] == 15
    left_in(runner, both.trial, 15)


def test_of_several_trainings_the_last_one_has_such_a_step(runner, run):
    both = run("--fits", "2")
    assert [step for step in both.trial.steps(mode=TRAIN) if weights_in(both.trial, step)] == [0, 10, 20, 30]
    left_in(runner, both.trial, 30)


@pytest.mark.parametrize("end", ENDS)
def test_a_training_that_is_ended_leaves_them_too(runner, run, end):
    both = run("--end", end)
    assert both.plain.returncode
    assert both.trial.steps(mode=TRAIN)[-1] == 13
    left_in(runner, both.trial, 13)


@pytest.mark.parametrize("words", [(), ("--validation",)])
@pytest.mark.parametrize("change", ["epoch", "train", "best", "loaded"])
def test_weights_that_the_program_has_changed_are_not_saved(run, change, words):
    both = run("--change", change, *words)
    assert both.plain.returncode == 0
    assert [step for step in both.trial.steps(mode=TRAIN) if weights_in(both.trial, step)] in ([0], [0, 10])


def test_nothing_more_is_saved_where_the_file_does_not_say_so(run):
    both = run(config={**CONFIG, "HookParameters": {"save_interval": 10}})
    assert [step for step in both.trial.steps(mode=TRAIN) if weights_in(both.trial, step)] == [0, 10]
