"""Unedited Gluon scripts: names, steps, modes and values against what the script itself computes in a plain run."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mxnet")

from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys

HERE = SUBJECTS / "mxnet"
TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
LOOPS = [
    f"{kind}{deferred}"
    for kind in ("imperative", "hybridized", "static", "static_shape", "inlined")
    for deferred in ("", " deferred")
]


@pytest.fixture(scope="module")
def play(play_script):
    """Return a script's runs; each script is run once."""
    made = {}

    def played(script):
        if script not in made:
            parameters = {"eval.start_step": 1000} if script == "mxnet/convolutions.py" else None
            made[script] = play_script(script, parameters)
        return made[script]

    return played


@pytest.fixture
def loops(play):
    return play("mxnet/loops.py")


@pytest.fixture
def scenes(play):
    return play("mxnet/scenes.py")


@pytest.fixture
def iterations(play):
    return play("mxnet/iterations.py")


@pytest.mark.parametrize("scene", LOOPS)
def test_a_training_loop_is_saved_as_it_computes(loops, scene):
    assert loops.check(scene) == 4 * (4 + 4 + 4) + 2
    for step in loops.steps(scene, TRAIN):
        value = {name: loops.value(f"net_{name}", step) for name in ("input_0", "output_0")}
        layer = {
            name: loops.value(f"net_{name}", step)
            for name in (
                "dense0_weight",
                "dense0_bias",
                "dense0_output_0",
                "dropout0_input_0",
                "dropout0_output_0",
                "dense1_input_0",
                "dense1_weight",
                "dense1_bias",
                "dense1_output_0",
            )
        }
        hidden, dropped = layer["dense0_output_0"], layer["dropout0_output_0"]
        expected = np.tanh(value["input_0"] @ layer["dense0_weight"].T + layer["dense0_bias"])
        np.testing.assert_allclose(hidden, expected, atol=1e-5)
        np.testing.assert_array_equal(hidden, layer["dropout0_input_0"])
        kept = dropped != 0
        assert 0 < kept.sum() < kept.size
        np.testing.assert_allclose(dropped[kept], 2 * hidden[kept])
        np.testing.assert_array_equal(dropped, layer["dense1_input_0"])
        out = dropped @ layer["dense1_weight"].T + layer["dense1_bias"]
        np.testing.assert_allclose(value["output_0"], out, atol=1e-5)
        np.testing.assert_array_equal(layer["dense1_output_0"], value["output_0"])


def test_every_step_of_every_loop_is_counted_in_its_mode(loops):
    assert loops.trial.steps(mode=TRAIN) == [*range(4 * len(LOOPS))]
    assert loops.trial.steps(mode=EVAL) == [*range(len(LOOPS))]
    assert loops.trial.tensor("gradient/net_dense0_weight").steps(mode=EVAL) == []
    assert loops.trial.tensor_names(collection="losses") == ["crossloss0_output_0"]
    assert [line for line in loops.lines if "saving" not in line and "saved" not in line] == []


@pytest.mark.parametrize("scene", ["contexts_updated_by_the_store", "contexts_updated_here", "contexts_by_default"])
def test_several_contexts_are_one_step_and_one_gradient(scenes, scene):
    assert scenes.check(scene) == 12
    assert scenes.saved(scene, "many_output_1") == [0, 1, 2]
    assert scenes.saved(scene, "many_output_1", EVAL) == [0, 1]


def test_the_estimator_is_followed_through_fit_and_evaluation(scenes):
    steps = scenes.steps("estimator", TRAIN)
    assert len(steps) == 6
    for step in steps[:-1]:
        weight, gradient = scenes.value("est_dense1_weight", step), scenes.value("gradient/est_dense1_weight", step)
        assert np.abs(gradient).max() > 0
        np.testing.assert_allclose(scenes.value("est_dense1_weight", step + 1), weight - 0.1 * gradient / 8, atol=1e-6)
    assert scenes.saved("estimator", "estloss0_output_0", EVAL) == [0, 1, 2, 3]


@pytest.mark.parametrize("scene, prefix, turns", [("gan", "", 1), ("gan_with_five_critics", "five", 5)])
def test_an_iteration_of_a_gan_is_one_step_with_the_gradients_of_both_nets(iterations, scene, prefix, turns):
    assert iterations.check(scene) == 3 * (6 + 2 * turns)
    assert iterations.saved(scene, f"gradient/{prefix}gen_weight") == [0, 1, 2]
    assert iterations.saved(scene, f"gradient/{prefix}dis_weight") == [0, 1, 2]


def test_an_episode_of_many_calls_is_one_step_with_the_first_of_them(iterations):
    assert iterations.check("actor_critic") == 3 * 4
    assert "act_output_16" not in iterations.trial.tensor_names()
    assert [line for line in iterations.lines if "first 16 calls of act in a step" in line]


def test_an_evaluation_before_the_update_is_a_step_of_its_own_and_the_training_step_goes_on(iterations):
    assert iterations.check("evaluated_before_its_update") == 3 * 3 + 6
    assert iterations.saved("evaluated_before_its_update", "targetloss0_output_0", EVAL) == []


def test_updates_by_hand_on_several_contexts_end_steps(iterations):
    assert iterations.check("by_hand_on_several_contexts") == 3 * 4


def test_a_trainer_may_come_after_updates_by_hand(iterations):
    assert iterations.check("trainer_after_updates_by_hand") == 6 * 2


def test_updates_by_hand_beside_a_trainer_end_steps(iterations):
    assert iterations.check("trainer_that_never_updates") == 3 * 4


def test_hand_written_losses_and_updates_are_saved_as_they_stand(scenes):
    assert scenes.check("by_hand") == 9


def test_a_rescaled_loss_is_saved_once_and_a_sum_of_losses_beside_its_parts(scenes):
    assert scenes.check("rescaled_loss") == 3
    assert scenes.saved("rescaled_loss", "loss0_output_0") == [1]


def test_clipped_and_accumulated_gradients_are_those_that_are_applied_once_an_update(iterations):
    assert iterations.check("clipped_and_accumulated") == 2 * (3 + 2)
    assert iterations.saved("clipped_and_accumulated", "loss0_output_0") == []


def test_parameters_that_a_pass_does_not_reach_have_no_gradient_in_its_step(scenes):
    assert scenes.check("unreached") == 4
    assert scenes.saved("unreached", "gradient/lay_dense0_weight") == [0, 2]
    assert scenes.saved("unreached", "gradient/lay_dense1_weight") == [1, 2]


@pytest.mark.parametrize("scene", ["shared", "shared_hybridized", "shared_static"])
def test_shared_parameters_and_a_layer_used_twice(scenes, scene):
    assert scenes.check(scene, 1e-6) == 18
    assert scenes.trial.tensor_names(regex="^shared_.*weight") == ["shared_dense0_weight"]


def test_a_symbol_block_is_a_model_like_any_other(scenes):
    assert scenes.check("symbol_block") == 3 + 12 + 8
    assert {"one_weight", "two_weight"} <= {*scenes.trial.tensor_names(collection="weights")}


@pytest.mark.parametrize("scene", ["numpy_front_end", "numpy_front_end_hybridized"])
def test_the_numpy_front_end(scenes, scene):
    assert scenes.check(scene, 1e-5) == 9
    assert scenes.saved(scene, "numpyloss0_output_0") == [0, 1, 2]


@pytest.mark.parametrize("scene", ["convolutions", "convolutions_hybridized"])
def test_weights_that_an_evaluation_brings_into_another_layout_are_saved_as_they_are(play, scene):
    """The evaluations are not saved, so nothing waits for them but the reading of the weights."""
    assert play("mxnet/convolutions.py").check(scene) == 2 * (4 + 4 * 4 + 2)


def test_a_hybridized_net_with_states_and_a_loss_inside(scenes):
    assert scenes.check("recurrent") == 6
    memory = scenes.saved("recurrent", "read_lstm0_output_0")
    assert memory == scenes.saved("recurrent", "read_dense0_input_0") == [0, 1]
    for step in scenes.steps("recurrent", TRAIN):
        weight, bias = scenes.value("read_dense0_weight", step), scenes.value("read_dense0_bias", step)
        out = scenes.value("read_lstm0_output_0", step) @ weight.T + bias
        np.testing.assert_allclose(scenes.value("read_dense0_output_0", step), out, atol=1e-6)


def test_sparse_gradients_are_saved_dense(scenes):
    assert scenes.check("sparse_gradient") == 2


def test_a_call_that_raises_leaves_nothing_behind(scenes):
    assert scenes.check("call_that_raises") == 3


def test_modes_follow_what_autograd_does(scenes):
    first = scenes.trial.global_step(TRAIN, scenes.steps("modes", TRAIN)[0])
    modes = [scenes.trial.mode(first + step).name for step in range(6)]
    assert modes == ["TRAIN", "EVAL", "EVAL", "EVAL", "TRAIN", "EVAL"]


def test_a_net_that_pickles_copies_and_hybridizes_late_is_saved_throughout(scenes):
    """What it pickles to is part of the output, which is compared with that of the plain run."""
    scene = "pickled_and_hybridized_late"
    assert scenes.saved(scene, "pickle_dense0_output_0") == [0, 1, 2, 3]


def test_only_sums_of_losses_and_hand_written_ones_got_a_name_of_ours(scenes):
    """A loss block's output, averaged or not, was never saved a second time."""
    with_own_loss = (
        "estimator",
        "symbol_block",
        "numpy_front_end",
        "contexts_by_default",
        "recurrent",
    )
    assert [scenes.saved(scene, "loss0_output_0") for scene in with_own_loss] == [[]] * len(with_own_loss)


def test_the_scripts_have_no_other_scenes_than_those_tested():
    sys.path.insert(0, str(HERE))
    try:
        scripts = [runpy.run_path(str(HERE / name)) for name in ("loops.py", "scenes.py")]
    finally:
        sys.path.remove(str(HERE))
    assert [scene.__name__ for scene in scripts[0]["SCENES"]] == LOOPS
    names = [scene.__name__ for scene in scripts[1]["SCENES"]]
    tested = Path(__file__).read_text()
    assert [name for name in names if f'"{name}"' not in tested] == []
