"""Classes of the program's that override all that they can: captured all the same, and called no more often."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from smd_agent.core.modes import ModeKeys


@pytest.fixture(scope="module")
def hostile(play_script):
    # What a scene prints says how often its overrides were called, which is compared with that of the plain run.
    return play_script("pytorch/hostile_scenes.py")


@pytest.fixture(scope="module")
def hostile_data(play_script):
    return play_script("pytorch/hostile_data_scenes.py")


def test_everything_of_every_step_is_saved_whatever_is_overridden(hostile):
    scenes = hostile.scenes
    assert len(scenes) > 60
    # Of three steps: four parameters and gradients, what the model returns, the loss.
    assert {scene: hostile.check(scene) for scene in scenes} == dict.fromkeys(scenes, 3 * (4 + 4 + 1 + 1))


def test_what_layers_get_and_return_is_saved_too(hostile):
    names = ("Net_input_0", "fc1_input_0", "fc1_output_0", "fc2_input_0", "fc2_output_0")
    missing = [(scene, name) for scene in hostile.scenes for name in names if hostile.saved(scene, name) != [0, 1, 2]]
    assert missing == []


def test_everything_of_every_step_is_saved_of_any_data(hostile_data):
    scenes = hostile_data.scenes
    # Of three steps: four parameters and gradients, what the model or its first layer gets, the loss.
    assert {scene: hostile_data.check(scene) for scene in scenes} == dict.fromkeys(scenes, 3 * (4 + 4 + 1 + 1))


@pytest.mark.parametrize("played", ["hostile", "hostile_data"])
def test_each_step_is_one_of_a_scene(played, request):
    played = request.getfixturevalue(played)
    assert played.trial.steps(mode=ModeKeys.TRAIN) == [*range(3 * len(played.scenes))]
    assert [line for line in played.lines if not line.startswith("smd_agent: sav")] == []
