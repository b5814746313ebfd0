"""Unedited training loops: names, steps, modes and values against what the script itself computes in a plain run."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from smd_agent.core.modes import ModeKeys

SCENES = {
    "plain_loop": 4 * (4 + 1 + 1 + 4) + 2,
    "accumulated_gradients": 6 * (4 + 1 + 4),
    "evaluation_in_between": 4 * (4 + 4) + 4 * (1 + 4),
    "several_optimizers": 3 * (4 + 4),
    "closures": 9 * (4 + 1 + 4),
    "skipped_steps": 4 * (4 + 1 + 4),
    "one_forward_for_each_view": 6 * (4 + 1) + 3 * (1 + 4),
    "one_forward_for_each_time": 6 * (4 + 1) + 2 * (4 + 2),
    "models_that_step_together": 3 * (4 + 4),
    "recomputed": 3 * (4 + 1 + 4),
    "recomputed_part": 3 * (4 + 4),
    "two_passes_of_one_forward": 3 * (4 + 4),
    "without_gradients_in_training_mode": 2 * (4 + 4) + 6,
}


@pytest.fixture(scope="module")
def scenes(play_script):
    return play_script("torch_step_scenes.py")


@pytest.mark.parametrize("scene", SCENES)
def test_steps_are_counted_by_the_rule_and_have_the_right_values(scenes, scene):
    assert scenes.check(scene) == SCENES[scene]


def test_every_step_is_one_of_a_scene(scenes):
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
        expected = [step for scene in SCENES for step in scenes.steps(scene, mode)]
        assert scenes.trial.steps(mode=mode) == expected
    assert len(scenes.lines) == 2


def test_losses_and_gradients_belong_to_the_forward_before_the_backward_pass(scenes):
    assert scenes.saved("one_forward_for_each_view", "Loss_output_0") == [1, 3, 5]
    assert scenes.saved("one_forward_for_each_view", "gradient/Net_fc1.weight") == [1, 3, 5]
    assert scenes.saved("one_forward_for_each_time", "gradient/Cell_weight_ih") == [2, 5]


def test_a_recomputed_forward_is_not_saved_again(scenes):
    for scene, model in (("recomputed", "Plain"), ("recomputed_part", "Inner")):
        assert scenes.saved(scene, f"{model}_output_0") == [0, 1, 2]
        for step in scenes.steps(scene, ModeKeys.TRAIN):
            assert not [n for n in scenes.trial.tensor_names(step=step, mode=ModeKeys.TRAIN) if "put_1" in n]
