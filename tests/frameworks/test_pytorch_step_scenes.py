"""Unedited training loops: names, steps, modes and values against what the script itself computes in a plain run."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from smd_agent.core.modes import ModeKeys

SCENES = {
    "plain_loop": 4 * (4 + 1 + 1 + 4) + 2,
    "accumulated_gradients": 2 * (4 + 3 * (1 + 1) + 4),
    "accumulated_and_clipped_unevenly": 2 * 4 + 5 + 2 * 4,
    "evaluation_in_between": 4 * (4 + 4) + 4 * (1 + 4),
    "several_optimizers": 3 * (4 + 4),
    "closures": 3 * (4 + 3 + 4),
    "skipped_steps": 4 * (4 + 1 + 4),
    "one_forward_for_each_view": 3 * (4 + 2 + 1 + 4),
    "one_forward_for_each_time": 2 * (4 + 16 + 4 + 2) + 2,
    "models_that_step_together": 3 * (4 + 4),
    "recomputed": 3 * (4 + 1 + 4),
    "recomputed_part": 3 * (4 + 4),
    "two_passes_of_one_forward": 3 * (4 + 4),
    "without_gradients_in_training_mode": 2 * (4 + 4) + 6,
}


@pytest.fixture(scope="module")
def scenes(play_script):
    return play_script("pytorch/step_scenes.py")


@pytest.mark.parametrize("scene", SCENES)
def test_steps_are_counted_by_the_rule_and_have_the_right_values(scenes, scene):
    assert scenes.check(scene) == SCENES[scene]


def test_every_step_is_one_of_a_scene(scenes):
    for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
        expected = [step for scene in SCENES for step in scenes.steps(scene, mode)]
        assert scenes.trial.steps(mode=mode) == expected
    assert any("first 16 calls of Cell in a step" in line for line in scenes.lines)
    assert any("has gone wrong (the loss is inf)" in line for line in scenes.lines)
    assert len(scenes.lines) == 4


def test_every_update_is_a_step_with_its_loss_and_its_gradients(scenes):
    assert scenes.saved("one_forward_for_each_view", "Loss_output_0") == [0, 1, 2]
    assert scenes.saved("one_forward_for_each_view", "gradient/Net_fc1.weight") == [0, 1, 2]
    assert scenes.saved("one_forward_for_each_time", "gradient/Cell_weight_ih") == [0, 1]


def test_gradients_are_saved_however_many_passes_add_to_them(scenes):
    assert scenes.saved("accumulated_and_clipped_unevenly", "gradient/Net_fc1.weight") == [0, 1]


def test_a_recomputed_forward_is_not_saved_again(scenes):
    for scene, model in (("recomputed", "Plain"), ("recomputed_part", "Inner")):
        assert scenes.saved(scene, f"{model}_output_0") == [0, 1, 2]
        for step in scenes.steps(scene, ModeKeys.TRAIN):
            assert not [n for n in scenes.trial.tensor_names(step=step, mode=ModeKeys.TRAIN) if "put_1" in n]
