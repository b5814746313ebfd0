"""Parameters and losses of Gluon by what they are for: what is trained is a weight or a bias, what is a loss is one."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mxnet")

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

PROGRAM = Path(__file__).parent.parent / "subjects" / "mxnet" / "gluon_roles.py"
TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
PARAMETERS = ("weights", "biases", "gradients")


class Roles:
    """A scene that has been played with the agent and without."""

    def __init__(self, runner, scene):
        config = {
            "HookParameters": {"save_interval": 1},
            "CollectionConfigurations": [{"CollectionName": name} for name in PARAMETERS],
        }
        plain = runner.plain(PROGRAM, scene)
        agent = runner.by_variable(PROGRAM, scene, config=config, SMD_AGENT_STRICT="1")
        assert plain.returncode == 0, plain.stderr
        assert (agent.returncode, agent.stdout) == (0, plain.stdout), agent.stderr
        self.lines = agent.stderr.splitlines()
        assert any("smd_agent: saved" in line for line in self.lines), self.lines
        self.trial = create_trial(str(runner.folder / "run"))
        self.printed = {"TRAIN": [], "EVAL": []}
        for mode, number in (line.split() for line in plain.stdout.splitlines()[:-1]):
            self.printed[mode].append(float(number))

    def collection(self, name, mode=TRAIN):
        return set(self.trial.tensor_names(collection=name, mode=mode))

    def values(self, name, mode=TRAIN):
        tensor = self.trial.tensor(name)
        return [float(tensor.value(step, mode=mode).mean()) for step in tensor.steps(mode=mode)]

    def is_what_was_printed(self, name, *modes):
        return all(self.values(name, mode) == pytest.approx(self.printed[mode.name], rel=1e-5) for mode in modes)


def test_normalisations_and_learned_activations_are_saved(runner):
    found = Roles(runner, "normalised")
    weights = {"net_dense0_weight", "net_batchnorm0_gamma", "net_prelu0_alpha", "net_dense1_weight"}
    assert found.collection("weights") == weights
    assert found.collection("biases") == {"net_dense0_bias", "net_batchnorm0_beta", "net_dense1_bias"}
    assert {f"gradient/{name}" for name in weights} <= found.collection("gradients")
    assert all(found.trial.tensor(name).steps(mode=TRAIN) == [0, 1, 2] for name in weights)
    (line,) = [line for line in found.lines if "left out" in line]
    assert "2 parameters of net that nothing trains are left out of weights and biases" in line


def test_a_block_that_is_trained_by_a_method_has_all_its_parameters(runner):
    found = Roles(runner, "trained_by_a_method")
    weights = {"crf_dense0_weight", "crf_dense1_weight", "crf_transition"}
    assert found.collection("weights") == weights
    assert found.collection("biases") == {"crf_dense0_bias", "crf_dense1_bias"}
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
    found = Roles(runner, scene)
    assert found.collection("losses") == found.collection("losses", EVAL) == {LOSSES[scene]}
    assert found.is_what_was_printed(LOSSES[scene], TRAIN, EVAL)


def test_a_block_is_a_loss_if_a_backward_pass_starts_from_what_it_returns(runner):
    found = Roles(runner, "objective")
    assert found.collection("losses") == found.collection("losses", EVAL) == {"objective0_output_0"}
    # What is saved is what the block has returned, as of any loss.
    for mode in (TRAIN, EVAL):
        halves = [number / 2 for number in found.printed[mode.name]]
        assert found.values("objective0_output_0", mode) == pytest.approx(halves, rel=1e-5)


def test_new_losses_in_each_step_keep_their_names(runner):
    found = Roles(runner, "new_loss_each_step")
    names = {"l2loss0_output_0", "l2loss1_output_0", "l1loss0_output_0", "loss0_output_0"}
    assert found.collection("losses") == names
    for name in names:
        assert len(found.trial.tensor(name).steps(mode=TRAIN)) == len(found.trial.steps(mode=TRAIN)), name


def test_losses_that_are_kept_have_their_own_names(runner):
    found = Roles(runner, "two_kept_losses")
    assert found.collection("losses") == {"l2loss0_output_0", "l2loss1_output_0", "loss0_output_0"}
    assert found.trial.tensor("l2loss1_output_0").steps(mode=TRAIN) == [1, 2]


def test_a_loss_that_owns_the_net_has_none_of_its_parameters(runner):
    found = Roles(runner, "loss_owns_the_net")
    assert found.collection("losses") == {"contrastloss0_output_0"}
