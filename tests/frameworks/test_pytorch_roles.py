"""Parameters of PyTorch models by what they are for: what is trained is in ``weights`` or ``biases``, nothing else."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from harness.printed import Printed, every_step
from harness.runner import SUBJECTS
from torch import nn

import smd_agent.pytorch as smd
from smd_agent.analysis.trial import create_trial

PROGRAM = SUBJECTS / "pytorch/roles.py"
EVERY = smd.SaveConfig(save_interval=1)


@pytest.fixture(scope="module")
def roles(module_runner):
    own = {"CollectionName": "mine", "CollectionParameters": {"include_regex": "ema"}}
    return Printed(module_runner("roles"), PROGRAM, config=every_step("weights", "biases", "gradients", own))


def test_everything_that_is_trained_is_a_weight_or_a_bias(roles):
    weights = {"fc.weight", "norm.gamma", "cls_token", "kernel", "raw_noise"}
    assert roles.names("weights", start="OtherNames_") == {f"OtherNames_{name}" for name in weights}
    biases = {"fc.bias", "norm.beta", "b1"}
    assert roles.names("biases", start="OtherNames_") == {f"OtherNames_{name}" for name in biases}
    gradients = {f"gradient/OtherNames_{name}" for name in weights | biases}
    assert roles.names("gradients", start="gradient/OtherNames_") == gradients
    for name in weights | biases:
        steps = roles.trial.tensor(f"OtherNames_{name}").steps()
        assert steps == roles.trial.tensor(f"gradient/OtherNames_{name}").steps() == [0, 1, 2]


def test_what_nothing_trains_is_left_out_unless_it_is_asked_for(roles):
    saved = set(roles.trial.tensor_names(regex="^Distilled_"))
    # A collection of one's own has what it asks for.
    ema = {"Distilled_ema.weight", "Distilled_ema.bias"}
    assert saved == {"Distilled_student.weight", "Distilled_student.bias", *ema}
    (line,) = [line for line in roles.lines if "Distilled" in line]
    assert "6 parameters of Distilled that nothing trains are left out of weights and biases" in line
    assert line.endswith(": to save them, set save_all (--save all), or name them in a collection of your own")


def test_what_is_trained_later_is_saved_from_then_on(roles):
    first = roles.trial.tensor("Later_first.weight").steps()
    assert roles.trial.tensor("Later_second.weight").steps() == first[1:]
    # Only its gradient tells that it is trained; the value is still that of the step's beginning.
    assert roles.trial.tensor("Later_third.weight").steps() == first
    assert roles.trial.tensor("Later_third.bias").steps() == first


def test_a_part_that_is_frozen_while_the_other_one_is_updated_is_trained(roles):
    first, *more = roles.trial.tensor("Turns_generator.weight").steps()
    for name in ("generator.weight", "generator.bias", "critic.weight", "critic.bias"):
        assert roles.trial.tensor(f"Turns_{name}").steps() == [first, *more], name
    assert len(more) == 2
    # It stands in an optimizer, but gets no gradient.
    assert roles.names("weights", start="Turns_frozen") | roles.names("biases", start="Turns_frozen") == set()
    (line,) = [line for line in roles.lines if "Turns" in line]
    assert "2 parameters of Turns that nothing trains are left out of weights and biases" in line


def test_names_are_those_of_the_model_around_what_is_called(roles):
    """The model's class has a ``__call__`` of its own, so that only its layer is seen being called."""
    assert roles.names("weights", start="OwnCall") == {"OwnCall_fc.weight"}
    assert roles.names("weights", start="Linear") == set()


def test_names_have_no_wrappers_of_libraries(roles):
    # The program's own class keeps its name, whatever it calls the module inside.
    assert roles.names("weights", start="Private") == {"Private__inner.weight"}
    assert roles.names("weights", start="PerSample") == set()


def test_all_has_what_nothing_trains_too(runner):
    found = Printed(runner, PROGRAM, config=every_step(save_all=True))
    names = set(found.trial.tensor_names(regex=r"^Distilled_.*(weight|bias)$"))
    assert len(names) == 8
    assert not any("left out" in line for line in found.lines)
    # It is in ``all``, which makes it no weight.
    roles = found.names("weights", start="Distilled") | found.names("biases", start="Distilled")
    assert roles == names - {name for name in names if f"gradient/{name}" not in found.trial.tensor_names()}
    assert 0 < len(roles) < 8


def test_the_launchers_all_is_all(runner):
    words = ("--every", "1", "--save", "all", "--out", runner.folder / "run", PROGRAM)
    assert runner.by_launcher(*words).returncode == 0
    names = set(create_trial(str(runner.folder / "run")).tensor_names())
    assert {"OtherNames_cls_token", "Distilled_ema.weight", "fc_output_0", "norm_input_0"} <= names


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.scale = nn.Linear(3, 1), nn.Parameter(torch.ones(1))
        self.old = nn.Linear(3, 1).requires_grad_(False)

    def forward(self, x):
        return self.fc(x) * self.scale


def trained(hook, model=None):
    model = model or Own()
    hook.register_module(model)
    model(torch.randn(4, 3)).mean().backward()
    hook.close()
    return set(smd.create_trial(hook.out_dir).tensor_names(regex="^Own"))


def test_regexes_of_ones_own_widen_a_collection(out):
    hook = smd.Hook(out, include_collections=["weights"], save_config=EVERY)
    hook.get_collection("weights").include("old.bias$")
    assert trained(hook) == {"Own_fc.weight", "Own_scale", "Own_old.bias"}


def test_a_collection_put_in_the_place_of_weights_has_what_its_regexes_say(out):
    hook = smd.Hook(out, include_collections=["weights"], save_config=EVERY)
    hook.add_collection(smd.Collection("weights", include_regex=["old"]))
    assert trained(hook) == {"Own_old.weight", "Own_old.bias"}


def test_of_a_model_that_nothing_trains_all_is_saved(out):
    hook = smd.Hook(out, include_collections=["weights"], save_config=EVERY)
    model = Own().requires_grad_(False)
    hook.register_module(model)
    model(torch.randn(4, 3))
    hook.close()
    assert set(smd.create_trial(out).tensor_names(regex="^Own")) == {"Own_fc.weight", "Own_old.weight"}


def test_a_tensor_given_by_hand_switches_no_collection_on(out):
    hook, model = smd.Hook(out, save_config=EVERY), Own()
    hook.register_module(model)
    for _ in range(3):
        loss = model(torch.randn(4, 3)).mean()
        hook.save_tensor("mine/and/weights", torch.ones(2), ["mine", "weights"])
        hook.save_tensor("weights/alone", torch.ones(2), "weights")
        loss.backward()
    hook.close()
    trial = smd.create_trial(out)
    given = {"mine/and/weights", "weights/alone"}
    assert set(trial.tensor_names()) == {*given, "Loss_output_0"}
    assert set(trial.tensor_names(collection="weights")) == given
    assert trial.tensor_names(collection="mine") == ["mine/and/weights"]
    assert all(trial.tensor(name).steps() == [0, 1, 2] for name in given)
