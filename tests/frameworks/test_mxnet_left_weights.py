"""The weights as a Gluon training leaves them, which are in the run's last step."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mxnet")

from harness.compare import assert_untouched, run_both
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys

SCRIPT = SUBJECTS / "mxnet/left_weights.py"
CONFIG = {
    "HookParameters": {"save_interval": 10, "save_last": True},
    "CollectionConfigurations": [{"CollectionName": "all"}],
}
TRAIN = ModeKeys.TRAIN


def run(runner, *words, config=CONFIG):
    both = run_both(runner, SCRIPT, *words, config=config, strict=True)
    assert_untouched(both, code=None, stderr=False)
    return both


def left_in(runner, trial, step):
    """Assert that a step has the weights that the program has left, and nothing else."""
    with np.load(runner.folder / "weights.npz") as left:
        assert {*trial.tensor_names(step=step, mode=TRAIN)} == {*left.files}
        for name, value in left.items():
            assert np.array_equal(trial.tensor(name).value(step, mode=TRAIN), value), name


@pytest.mark.parametrize("words", [(), ("--function",)])
def test_the_step_behind_the_last_one_has_the_weights_that_are_left(runner, words):
    both = run(runner, *words)
    assert both.plain.returncode == 0
    # An evaluation has come in between.
    assert both.trial.steps(mode=TRAIN) == [0, 10, 20, 25]
    left_in(runner, both.trial, 25)


@pytest.mark.parametrize("end", ["error", "exit", "SIGINT", "SIGTERM"])
@pytest.mark.parametrize("amid", [False, True])
def test_a_training_that_is_ended_leaves_them_too(runner, end, amid):
    both = run(runner, "--end", end, *(["--amid"] if amid else []))
    assert both.plain.returncode
    assert both.trial.steps() == [0, 10, 17]
    left_in(runner, both.trial, 17)


@pytest.mark.parametrize("change", ["loaded", "set"])
def test_weights_that_the_program_has_changed_are_not_saved(runner, change):
    both = run(runner, "--change", change)
    assert both.trial.steps(mode=TRAIN) == [0, 10, 20]


def test_nothing_more_is_saved_where_the_file_does_not_say_so(runner):
    both = run(runner, config={**CONFIG, "HookParameters": {"save_interval": 10}})
    assert both.trial.steps(mode=TRAIN) == [0, 10, 20]
