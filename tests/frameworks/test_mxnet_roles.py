"""Parameters and losses of Gluon by what they are for: what is trained is a weight or a bias, what is a loss is one."""

from __future__ import annotations

import pytest

pytest.importorskip("mxnet")

from harness.printed import Printed, every_step
from harness.runner import SUBJECTS

from smd_agent.core.modes import ModeKeys

PROGRAM = SUBJECTS / "mxnet/roles.py"
TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
CONFIG = every_step("weights", "biases", "gradients")


def play(runner, scene):
    return Printed(runner, PROGRAM, scene, config=CONFIG)


def test_normalisations_and_learned_activations_are_saved(runner):
    found = play(runner, "normalised")
    weights = {"net_dense0_weight", "net_batchnorm0_gamma", "net_prelu0_alpha", "net_dense1_weight"}
    assert found.names("weights") == weights
    assert found.names("biases") == {"net_dense0_bias", "net_batchnorm0_beta", "net_dense1_bias"}
    assert {f"gradient/{name}" for name in weights} <= found.names("gradients")
    assert all(found.trial.tensor(name).steps(mode=TRAIN) == [0, 1, 2] for name in weights)
    (line,) = [line for line in found.lines if "left out" in line]
    assert "2 parameters of net that nothing trains are left out of weights and biases" in line


def test_a_block_that_is_trained_by_a_method_has_all_its_parameters(runner):
    found = play(runner, "trained_by_a_method")
    weights = {"crf_dense0_weight", "crf_dense1_weight", "crf_transition"}
    assert found.names("weights") == weights
    assert found.names("biases") == {"crf_dense0_bias", "crf_dense1_bias"}
    for name in weights:
        assert found.trial.tensor(name).steps(mode=TRAIN) == [0, 1, 2], name
        assert found.trial.tensor(f"gradient/{name}").steps(mode=TRAIN) == [0, 1, 2], name


LOSSES = {
    "eleventh_loss": "l2loss10_output_0",
    "prefixed_loss": "mine_output_0",
    "criterion": "criterion0_output_0",
    "normalised": "l2loss0_output_0",
}


@pytest.mark.parametrize("scene", LOSSES)
def test_a_loss_is_one_whatever_it_is_called(runner, scene):
    found = play(runner, scene)
    assert found.names("losses") == found.names("losses", EVAL) == {LOSSES[scene]}
    assert found.is_what_was_printed(LOSSES[scene], TRAIN, EVAL)


def test_a_block_is_a_loss_if_a_backward_pass_starts_from_what_it_returns(runner):
    found = play(runner, "objective")
    assert found.names("losses") == found.names("losses", EVAL) == {"objective0_output_0"}
    # What is saved is what the block has returned, as of any loss.
    for mode in (TRAIN, EVAL):
        halves = [number / 2 for number in found.losses[mode.name]]
        assert found.values("objective0_output_0", mode) == pytest.approx(halves, rel=1e-5)


def test_new_losses_in_each_step_keep_their_names(runner):
    found = play(runner, "new_loss_each_step")
    names = {"l2loss0_output_0", "l2loss1_output_0", "l1loss0_output_0", "loss0_output_0"}
    assert found.names("losses") == names
    for name in names:
        assert len(found.trial.tensor(name).steps(mode=TRAIN)) == len(found.trial.steps(mode=TRAIN)), name


def test_losses_that_are_kept_have_their_own_names(runner):
    found = play(runner, "two_kept_losses")
    assert found.names("losses") == {"l2loss0_output_0", "l2loss1_output_0", "loss0_output_0"}
    assert found.trial.tensor("l2loss1_output_0").steps(mode=TRAIN) == [1, 2]


def test_a_loss_that_owns_the_net_has_none_of_its_parameters(runner):
    found = play(runner, "loss_owns_the_net")
    assert found.names("losses") == {"contrastloss0_output_0"}
