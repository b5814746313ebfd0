"""Keras, tape and session scripts for the old library, unedited, on the name ``smdebug`` that is ours."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")

from harness.old_scripts import missing_names, run_old_script
from harness.runner import Runner

from smd_agent.core.modes import ModeKeys


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    return Runner(tmp_path_factory.mktemp("tensorflow"), ("tensorflow",))


def test_a_callback_of_the_script_takes_the_place_of_the_agents(runner):
    fit = run_old_script(runner, "keras_fit.py")
    fit.assert_alike()
    # Twelve batches in two epochs; two of validation after each, and three of an evaluation.
    assert fit.trial.tensor("hidden/weights/hidden/kernel:0").steps(mode=ModeKeys.TRAIN) == [0, 3, 6, 9]
    assert fit.trial.tensor("hidden/outputs").steps(mode=ModeKeys.EVAL) == [0, 3, 6]
    assert fit.trial.tensor("hidden/outputs").steps(mode=ModeKeys.PREDICT) == [0]


def test_a_wrapped_tape_and_optimizer_are_saved_once(runner):
    tape = run_old_script(runner, "keras_tape.py")
    tape.assert_alike()
    gradients = tape.trial.tensor_names(collection="gradients")
    assert len(gradients) == 2
    assert {tuple(tape.trial.tensor(name).steps(mode=ModeKeys.TRAIN)) for name in gradients} == {(0, 2, 4)}
    assert [float(tape.trial.tensor("scalar/start").value(step, mode=ModeKeys.TRAIN)[0]) for step in (0, 2)] == [0, 8]


def test_a_session_that_is_handed_its_hook_twice_counts_once(runner):
    session = run_old_script(runner, "tensorflow_session.py")
    session.assert_alike()
    assert session.trial.steps(mode=ModeKeys.TRAIN) == [0, 2, 4]


def test_every_name_can_be_imported(runner):
    assert missing_names(runner, "smdebug.tensorflow") == []
