"""Gradients that come about in different ways: saved are those of the loss, whatever the program made of them."""

from __future__ import annotations

import numpy as np
import pytest

from smd_agent.core.modes import ModeKeys

pytest.importorskip("torch")


PARAMETERS = 4


@pytest.fixture(scope="module")
def scenes(play_script):
    return play_script("pytorch/gradient_scenes.py")


@pytest.fixture(scope="module")
def kinds(play_script):
    return play_script("pytorch/parameter_scenes.py")


# What a loss was scaled by is a power of two, so dividing by it costs no bit.
EXACT = {
    "grad_scaler": 6 * (PARAMETERS + PARAMETERS + 1),
    "grad_scaler_accumulation": 2 * PARAMETERS,
    "several_scalers": 3 * (2 * PARAMETERS + 2),
    "closure_that_assigns": 2 * PARAMETERS,
    "optimizer_in_backward": 3 * PARAMETERS,
    "assigned_gradients": 4 * PARAMETERS,
    "updates_by_hand": 3 * PARAMETERS,
    "diagnosed_and_trained": 2 * 2,
}


KINDS = {
    "a_pass_after_the_update": 2 * 2,
    "sparse_gradients": 3,
    "a_branch_without_gradient": 4 * 2,
    "a_branch_with_zeros": 2 + 3 * 4,
    "a_branch_that_is_not_zeroed": 4,
    "adversaries": 2 * (2 + 1),
    "penalty_and_two_passes": 3 * (2 + PARAMETERS),
    "a_trunk_in_two_models": 2 * 8,
    "complex_parameters": 2,
    "bfloat16_parameters": 2 * (2 * PARAMETERS + 1),
    "parametrized_and_tied": 3 * 2 * 6,
    "overwritten_in_place": 3 * (7 + 4),
    "functional_losses_in_evaluation": 2 * 5,
}


@pytest.mark.parametrize("scene", EXACT)
def test_gradients_are_those_of_the_loss(scenes, scene):
    assert scenes.check(scene, 1e-7) == EXACT[scene]


def test_losses_scaled_and_not_in_one_step(scenes):
    assert scenes.check("scaled_and_not", 1e-6) == 2 * (2 * PARAMETERS + 1)


def test_a_step_of_many_closure_calls_has_the_gradients_of_the_last(scenes):
    assert scenes.check("lbfgs") == 2 * PARAMETERS


def test_an_overflow_shows_and_the_weights_stay(scenes):
    steps = scenes.steps("grad_scaler", ModeKeys.TRAIN)
    overflowed = scenes.value("gradient/Net_fc1.weight", steps[3])
    assert np.isnan(overflowed).any()
    weights = [scenes.value("Net_fc1.weight", step) for step in steps]
    assert np.array_equal(weights[3], weights[4])
    assert not np.array_equal(weights[4], weights[5])


def test_a_gradient_computed_only_to_look_at_it_is_not_the_models(scenes):
    assert scenes.saved("diagnosed_and_trained", "gradient/Net_fc1.weight") == []


@pytest.mark.parametrize("scene", KINDS)
def test_parameters_and_layers_of_every_kind(kinds, scene):
    assert kinds.check(scene, 1e-6) == KINDS[scene]


def test_what_a_pass_does_not_reach_has_no_gradient_in_its_step(kinds):
    assert kinds.saved("a_branch_without_gradient", "gradient/Branches_left.weight") == [0, 2]
    assert kinds.saved("a_branch_without_gradient", "gradient/Branches_right.weight") == [1, 3]
    # Zeros that an optimizer uses are a gradient, and what is left over of an earlier step is none.
    assert kinds.saved("a_branch_with_zeros", "gradient/Branches_left.weight") == [0, 1, 2, 3]
    assert kinds.saved("a_branch_that_is_not_zeroed", "gradient/Branches_left.weight") == [0, 1]
    assert kinds.saved("adversaries", "gradient/Discriminator_weight") == [0, 1]


def test_one_tensor_with_two_names_in_a_model_is_saved_once(kinds):
    names = kinds.trial.tensor_names(regex="Tied_")
    assert "Tied_embed.weight" in names
    assert "Tied_out.weight" not in names
    assert "gradient/Tied_norm.parametrizations.weight.original1" in names


def test_a_loss_is_saved_under_one_name(kinds):
    steps = kinds.steps("functional_losses_in_evaluation", ModeKeys.EVAL)
    assert kinds.trial.tensor_names(step=steps[0], mode=ModeKeys.EVAL, collection="losses") == [
        "Loss_output_0",
        "NLLLoss_output_0",
        "binary_cross_entropy_with_logits_loss_output_0",
        "cross_entropy_loss_output_0",
        "mse_loss_output_0",
    ]


def test_no_scene_makes_the_agent_complain(scenes, kinds):
    for played in (scenes, kinds):
        first, last = played.lines
        assert "saving all tensors" in first
        assert "saved" in last
