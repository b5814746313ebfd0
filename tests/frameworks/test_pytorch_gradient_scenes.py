"""Gradients that come about in different ways: saved are those of the loss, whatever the program made of them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

PARAMETERS = 4


@pytest.fixture(scope="module")
def scenes(play_script):
    return play_script("torch_gradient_scenes.py")


@pytest.fixture(scope="module")
def kinds(play_script):
    return play_script("torch_parameter_scenes.py")


# What a loss was scaled by is a power of two, so dividing by it costs no bit.
EXACT = {
    "grad_scaler": 6 * (PARAMETERS + PARAMETERS + 1),
    "grad_scaler_accumulation": 6 * PARAMETERS,
    "several_scalers": 3 * (2 * PARAMETERS + 2),
    "closure_that_assigns": 2 * PARAMETERS,
    "optimizer_in_backward": 3 * PARAMETERS,
    "assigned_gradients": 4 * PARAMETERS,
    "updates_by_hand": 3 * PARAMETERS,
    "diagnosed_and_trained": 2 * 2,
}


@pytest.mark.parametrize("scene", EXACT)
def test_gradients_are_those_of_the_loss(scenes, scene):
    assert scenes.check(scene, 1e-7) == EXACT[scene]


def test_losses_scaled_and_not_in_one_step(scenes):
    assert scenes.check("scaled_and_not", 1e-6) == 2 * (2 * PARAMETERS + 1)


def test_every_call_of_a_closure_is_a_step_with_its_gradients(scenes):
    calls = len(scenes.steps("lbfgs", scenes_train()))
    assert calls >= 6
    assert scenes.check("lbfgs") == calls * PARAMETERS


def scenes_train():
    from smd_agent.core.modes import ModeKeys

    return ModeKeys.TRAIN


def test_an_overflow_shows_and_the_weights_stay(scenes):
    import numpy as np

    steps = scenes.steps("grad_scaler", scenes_train())
    overflowed = scenes.value("gradient/Net_fc1.weight", steps[3])
    assert np.isnan(overflowed).any()
    weights = [scenes.value("Net_fc1.weight", step) for step in steps]
    assert np.array_equal(weights[3], weights[4])
    assert not np.array_equal(weights[4], weights[5])


def test_a_gradient_computed_only_to_look_at_it_is_not_the_models(scenes):
    assert scenes.saved("diagnosed_and_trained", "gradient/Net_fc1.weight") == []
