"""Classes of a Gluon program's that override all that they can: captured all the same, and called no more often."""

from __future__ import annotations

import pytest

pytest.importorskip("mxnet")

from smd_agent.core.modes import ModeKeys


@pytest.fixture(scope="module")
def hostile(play_script):
    # What a scene prints says how often its overrides were called, which is compared with that of the plain run.
    return play_script("mxnet/hostile_scenes.py")


def test_everything_of_every_step_is_saved_whatever_is_overridden(hostile):
    scenes = hostile.scenes
    assert len(scenes) > 60
    # Of three steps: four parameters and gradients, what the model gets and returns, the loss.
    assert {scene: hostile.check(scene) for scene in scenes} == dict.fromkeys(scenes, 3 * (4 + 4 + 2 + 1))


def test_what_layers_get_and_return_is_saved_too(hostile):
    names = ("net_fc1_input_0", "net_fc1_output_0", "net_fc2_input_0", "net_fc2_output_0")
    missing = [(scene, name) for scene in hostile.scenes for name in names if hostile.saved(scene, name) != [0, 1, 2]]
    assert missing == []


def test_each_step_is_one_of_a_scene(hostile):
    assert hostile.trial.steps(mode=ModeKeys.TRAIN) == [*range(3 * len(hostile.scenes))]
    assert [line for line in hostile.lines if not line.startswith("smd_agent: sav")] == []


def test_what_copies_pickles_and_saves_itself_finds_nothing_of_ours_anywhere(play_script):
    # The digest that each scene prints is of all that it has copied, pickled, saved and looked at.
    copying = play_script("mxnet/copying_scenes.py")
    assert {scene: copying.check(scene) for scene in copying.scenes} == {
        **dict.fromkeys(["looked_at_everywhere", "hooked", "run_as_one_operation", "scheduled"], 3 * (4 + 4 + 1)),
        "estimator": 0,
    }
    assert copying.saved("run_as_one_operation", "hybrid_dense0_output_0") == [0, 1, 2]
    assert copying.saved("estimator", "gradient/est_dense0_weight") == [0, 1, 2]
    assert [line for line in copying.lines if not line.startswith("smd_agent: sav")] == []
