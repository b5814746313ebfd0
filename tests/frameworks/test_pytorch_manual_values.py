"""Values that a PyTorch script gives by hand land in the iteration in which they were given."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as F
from harness.sagemaker_metrics import metric_values
from torch import nn

import smd_agent.pytorch as smd

SECOND = smd.SaveConfig(save_interval=2)
MODES = {"set": smd.modes.TRAIN, "followed": None}


class Loop:
    """A training loop, with what is given at its places."""

    def __init__(self, out, **options):
        self.hook = smd.Hook(out, **{"save_config": SECOND, **options})
        self.net = nn.Sequential(nn.Linear(5, 3))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.hook.register_module(self.net)

    def give(self, place, number):
        # In place, as a program's own buffer is overwritten.
        self.hook.save_tensor(f"{place}_tensor", torch.full((2,), float(number)))
        self.hook.save_scalar(place, number)

    def run(self, steps, places=("top", "middle", "bottom")):
        for number in range(steps):
            if "top" in places:
                self.give("top", number)
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.net(torch.ones(4, 5)), torch.zeros(4, dtype=torch.long))
            if "middle" in places:
                self.give("middle", number)
            loss.backward()
            self.optimizer.step()
            if "bottom" in places:
                self.give("bottom", number)

    def evaluate(self, steps, give=False):
        self.net.eval()
        with torch.no_grad():
            for number in range(steps):
                if give:
                    self.give("top", 100 + number)
                self.net(torch.ones(4, 5))
                if give:
                    self.give("answer", number)
        self.net.train()

    def trial(self):
        self.hook.close()
        return smd.create_trial(self.hook.out_dir)


def values(trial, name, mode=smd.modes.GLOBAL):
    if not trial.has_tensor(name):
        return {}
    tensor = trial.tensor(name)
    return {step: np.ravel(tensor.value(step, mode=mode))[0].item() for step in tensor.steps(mode=mode)}


@pytest.mark.parametrize("place", ["top", "middle", "bottom"])
@pytest.mark.parametrize("mode", MODES)
def test_every_place_of_the_loop_is_of_its_iteration(out, place, mode):
    loop = Loop(out)
    if mode == "set":
        loop.hook.set_mode(smd.modes.TRAIN)
    else:
        loop.hook.follow_calls()
    loop.run(6, [place])
    trial = loop.trial()
    assert values(trial, f"{place}_tensor", smd.modes.TRAIN) == {0: 0, 2: 2, 4: 4}
    assert values(trial, f"scalar/{place}", smd.modes.TRAIN) == {number: number for number in range(6)}


def test_before_and_after_the_loop(out):
    loop = Loop(out)
    loop.give("before", 7)
    loop.run(4)
    # Step 3, which is not saved otherwise.
    loop.give("after", 8)
    trial = loop.trial()
    for name in ("before_tensor", "scalar/before"):
        assert values(trial, name) == {0: 7}
    for name in ("after_tensor", "scalar/after"):
        assert values(trial, name) == {3: 8}
    assert values(trial, "top_tensor") == values(trial, "bottom_tensor") == {0: 0, 2: 2}


def test_a_run_without_a_step_keeps_what_was_given(out):
    loop = Loop(out)
    loop.give("before", 7)
    trial = loop.trial()
    assert values(trial, "before_tensor") == values(trial, "scalar/before") == {0: 7}


def test_what_the_first_step_does_not_save_is_a_line(out, capsys):
    loop = Loop(out, save_config=smd.SaveConfig(save_interval=2, start_step=2))
    loop.give("before", 7)
    loop.run(4)
    trial = loop.trial()
    assert values(trial, "top_tensor") == {2: 2}
    assert values(trial, "scalar/before") == {0: 7}
    said = capsys.readouterr().err
    assert said.count("given before the first step, which does not save it: before_tensor") == 1
    assert "top" not in said


def test_a_value_of_the_top_after_the_last_step_does_not_replace_the_one_of_that_step(out, capsys):
    loop = Loop(out)
    loop.run(3)
    loop.give("top", 3)
    trial = loop.trial()
    assert values(trial, "top_tensor") == {0: 0, 2: 2}
    assert values(trial, "scalar/top") == {0: 0, 1: 1, 2: 2}
    assert "scalar/top was given again after the last step" in capsys.readouterr().err


def test_evaluations_between(out):
    loop = Loop(out, save_config=smd.SaveConfig(save_interval=1))
    loop.hook.follow_calls()
    for _ in range(2):
        loop.run(2)
        loop.evaluate(3, give=True)
    trial = loop.trial()
    assert values(trial, "top_tensor", smd.modes.TRAIN) == {0: 0, 1: 1, 2: 0, 3: 1}
    assert values(trial, "bottom_tensor", smd.modes.TRAIN) == {0: 0, 1: 1, 2: 0, 3: 1}
    for name in ("top_tensor", "scalar/top"):
        assert values(trial, name, smd.modes.EVAL) == {0: 100, 1: 101, 2: 102, 3: 100, 4: 101, 5: 102}
    assert values(trial, "answer_tensor", smd.modes.EVAL) == {0: 0, 1: 1, 2: 2, 3: 0, 4: 1, 5: 2}


def test_scalars_of_an_evaluation_that_is_not_saved(out):
    loop = Loop(out, save_config=smd.SaveConfig(save_interval=100))
    loop.hook.follow_calls()
    loop.run(2)
    loop.evaluate(3, give=True)
    loop.run(1)
    assert values(loop.trial(), "scalar/top", smd.modes.EVAL) == {0: 100, 1: 101, 2: 102}


def test_one_that_acts_before_it_trains(out):
    loop = Loop(out)
    loop.hook.follow_calls()
    for number in range(4):
        loop.give("top", number)
        loop.evaluate(1)
        loop.run(1, [])
    trial = loop.trial()
    assert values(trial, "top_tensor", smd.modes.TRAIN) == {0: 0, 2: 2}
    assert values(trial, "scalar/top", smd.modes.TRAIN) == {0: 0, 1: 1, 2: 2, 3: 3}


def test_a_value_that_waits_is_a_copy(out):
    loop = Loop(out)
    buffer = torch.zeros(2)
    for number in range(3):
        buffer.fill_(number)
        loop.hook.save_tensor("buffer", buffer)
        buffer.fill_(-1)
        loop.run(1, [])
    assert values(loop.trial(), "buffer") == {0: 0, 2: 2}


def test_lists_of_tensors_and_what_is_none(out, capsys):
    loop = Loop(out)
    loop.run(1, [])
    parameters = list(loop.net.parameters())
    loop.hook.save_tensor("grads", [parameter.grad for parameter in parameters], "gradients")
    loop.hook.save_tensor("nested", [torch.ones(2), None, [torch.zeros(3, requires_grad=True)]])
    loop.hook.save_tensor("numbers", [1.0, 2.0])
    for _ in range(2):
        loop.hook.save_tensor("ragged", [[1], [1, 2]])
        loop.hook.save_tensor("hostile", Hostile())
    grads = [parameter.grad.numpy().copy() for parameter in parameters]
    trial = loop.trial()
    for i, grad in enumerate(grads):
        np.testing.assert_array_equal(trial.tensor(f"grads_{i}").value(0), grad)
    assert {"grads_0", "grads_1"} <= set(trial.tensor_names(collection="gradients"))
    assert trial.tensor("nested_0").value(0).shape == (2,)
    assert trial.tensor("nested_2_0").value(0).shape == (3,)
    assert not trial.has_tensor("nested_1")
    np.testing.assert_array_equal(trial.tensor("numbers").value(0), [1, 2])
    said = capsys.readouterr().err
    assert said.count("ragged cannot be saved: ") == said.count("hostile cannot be saved: ") == 1


class Hostile:
    def __array__(self, dtype=None, copy=None):
        raise LookupError("no")


def test_a_loss_that_is_recorded_has_that_name_only(out):
    loop = Loop(out)
    for _ in range(3):
        loop.optimizer.zero_grad()
        loss = F.cross_entropy(loop.net(torch.ones(4, 5)), torch.zeros(4, dtype=torch.long))
        loop.hook.record_tensor_value("loss", loss)
        loop.hook.record_tensor_value("other", loss)
        loss.backward()
        loop.optimizer.step()
    trial = loop.trial()
    assert trial.tensor_names(collection="losses") == ["loss_output_0"]
    assert trial.tensor("loss_output_0").steps() == [0, 2]


def test_losses_and_chosen_scalars_are_metrics_of_sagemaker(out, tmp_path, monkeypatch):
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path / "metrics"))
    loop = Loop(out, include_collections=["weights"])
    loop.hook.set_mode(smd.modes.TRAIN)
    loop.hook.save_scalar("chosen", 7, sm_metric=True)
    loop.run(3, ["bottom"])
    trial = loop.trial()
    (name,) = trial.tensor_names(collection="losses")
    loss = {step: trial.tensor(name).value(step, mode=smd.modes.TRAIN).item() for step in (0, 2)}
    assert metric_values(tmp_path / "metrics") == {f"{name}_TRAIN": loss, "scalar/chosen_TRAIN": {0: 7}}


def test_ranks_that_mpirun_has_started_are_workers_of_one_run(out, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    for rank in ("0", "1"):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        loop = Loop(out, include_workers="all")
        loop.run(2, ["bottom"])
        loop.hook.finish(end_marker=False)
    trial = loop.trial()
    assert trial.workers() == ["worker_0", "worker_1"]
    assert trial.num_workers == 2
    assert trial.steps() == [0, 1]


def test_a_trial_in_the_same_process_has_the_step_that_has_ended(tmp_path):
    out = str(tmp_path / "run")
    loop = Loop(out, include_collections=["gradients", "updates"])
    loop.run(3, places=())
    trial = smd.create_trial(out)
    assert trial.steps() == [0, 2]
    names = trial.tensor_names(step=2)
    assert names == trial.tensor_names(step=0)
    loop.give("after", 7)
    assert values(trial, "scalar/after") == {2: 7}
    loop.run(3, places=())
    loop.hook.close()
    trial = smd.create_trial(out)
    assert trial.steps() == [0, 2, 4]
    assert trial.tensor_names(step=4) == names
    assert values(trial, "scalar/after") == {2: 7}


def test_a_trial_has_no_step_that_goes_on(tmp_path):
    out = str(tmp_path / "run")
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["gradients"])
    net = nn.Linear(5, 3)
    hook.register_module(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(3):
        loss = net(torch.ones(4, 5)).sum()
        if number:
            assert smd.create_trial(out).steps() == [*range(number)]
        optimizer.zero_grad()
        loss.backward()
        if number:
            assert smd.create_trial(out).steps() == [*range(number)]
        optimizer.step()
    assert smd.create_trial(out).steps() == [0, 1, 2]
    hook.close()
