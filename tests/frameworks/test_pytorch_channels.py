"""Shares of the channels of what modules return, and where PyTorch's modules have their channels."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import smd_agent.pytorch as smd
from smd_agent.errors import ReductionUnavailableForStep
from smd_agent.pytorch.device import late_values, pending_steps

FORM = smd.ReductionConfig(["statistics"], save_shape=True, save_raw_up_to=8)


def saved(out, model, x, form=FORM):
    """Run a model in one saved step; return the trial and what each module has returned, by name."""
    outputs = {}
    title = type(model).__name__

    def keep(name):
        def after(module, args, output):
            # A later module may overwrite it.
            outputs.setdefault(name, output.detach().clone())

        return after

    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), reduction_config=form, save_all=True)
    hook.register_module(model)
    for name, module in model.named_modules():
        if not isinstance(module, (nn.LSTM, nn.MultiheadAttention)):
            module.register_forward_hook(keep(f"{name or title}_output_0"))
    model(x).float().square().mean().backward()
    hook.close()
    return smd.create_trial(hook.out_dir), outputs


def shares(trial, kind="dead_share"):
    """The stored shares of all tensors of the first step, by name."""
    found = {name: trial.tensor(name).reduction_values(0) for name in trial.tensor_names()}
    return {name: stored[kind, False] for name, stored in found.items() if (kind, False) in stored}


def dead(output, axis):
    channels = output.movedim(axis, 0).reshape(output.shape[axis], -1)
    return float((channels == 0).all(1).double().mean())


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def kill(layer, channels):
    """Have channels of a layer never reach a ReLU behind it."""
    with torch.no_grad():
        layer.weight[:channels] = 0
        layer.bias[:channels] = -1


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.relu = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.pool, self.fc, self.act = nn.AdaptiveAvgPool2d(2), nn.Linear(32, 10), nn.Tanh()
        kill(self.fc, 2)
        with torch.no_grad():
            self.norm.bias[:3] = -100
            self.fc.bias[:4] = torch.tensor([90.0, -90, 90, -90])
            self.fc.weight[:4] = 0

    def forward(self, x):
        return self.act(self.fc(self.pool(self.relu(self.norm(self.conv(x)))).flatten(1)))


def test_dead_channels_of_images_and_saturated_units(out):
    trial, outputs = saved(out, Images(), torch.randn(4, 3, 9, 9))
    found = shares(trial)
    assert found == {name: dead(output, 1) for name, output in outputs.items()}
    assert found["relu_output_0"] == found["pool_output_0"] == 3 / 8
    held = {name: value for name, value in shares(trial, "saturated_share").items() if value}
    assert held == {"act_output_0": 0.4, "Images_output_0": 0.4}
    weight = trial.tensor("Images_conv.weight")
    with pytest.raises(ReductionUnavailableForStep, match=r"dead_share .* Images_conv"):
        weight.reduction_value(0, "dead_share")


def test_shares_of_an_output_that_is_saved_whole_are_stored_beside_it(out):
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU())
    kill(model[0], 1)
    trial, outputs = saved(out, model, torch.randn(2, 5))
    name = "1_output_0"
    np.testing.assert_array_equal(trial.tensor(name).value(0), outputs[name].numpy())
    assert trial.tensor(name).reduction_value(0, "dead_share") == dead(outputs[name], 1) >= 0.25
    assert trial.tensor(name).reduction_value(0, "max") == outputs[name].max()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.act, self.down = nn.LayerNorm(6), nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 6)
        kill(self.up, 5)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.first, self.second, self.last = nn.Embedding(30, 6), Block(), Block(), nn.ReLU()

    def forward(self, x):
        return self.last(self.second(self.first(self.embedding(x))) * 2)


def test_tokens_have_their_features_last(out):
    trial, outputs = saved(out, Tokens(), torch.randint(30, (3, 11)))
    assert shares(trial) == {name: dead(output, 2) for name, output in outputs.items()}
    assert shares(trial)["second.act_output_0"] >= 0.25


class Signals(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.act, self.pool, self.own = nn.Conv1d(2, 8, 3), nn.ReLU(), nn.MaxPool1d(2), nn.ReLU()
        kill(self.conv, 4)

    def forward(self, x):
        return self.own(self.pool(self.act(self.conv(x))) - 1)


def test_signals_have_their_channels_second(out):
    trial, outputs = saved(out, Signals(), torch.randn(3, 2, 20))
    assert shares(trial) == {name: dead(output, 1) for name, output in outputs.items()}
    assert shares(trial)["act_output_0"] >= 0.5


class Both(nn.Module):
    """Signals, then their features last; the layers tell, and what they give is followed."""

    def __init__(self):
        super().__init__()
        self.conv, self.first, self.fc, self.second, self.third = (
            nn.Conv1d(2, 8, 3), nn.ReLU(), nn.Linear(8, 12), nn.ReLU(), nn.ReLU())  # fmt: skip
        kill(self.conv, 4)
        kill(self.fc, 9)

    def forward(self, x):
        return self.third(self.second(self.fc(self.first(self.conv(x)).transpose(1, 2))) + 1)


def test_of_three_dimensions_nothing_is_said_where_it_is_not_known(out):
    trial, outputs = saved(out, Both(), torch.randn(3, 2, 20))
    axes = {"conv": 1, "first": 1, "fc": 2, "second": 2}
    names = {f"{name}_output_0": axis for name, axis in axes.items()}
    assert shares(trial) == {name: dead(outputs[name], axis) for name, axis in names.items()}
    assert shares(trial)["second_output_0"] >= 0.75


class LastForAWhile(nn.Module):
    """Images whose channels are last in the middle, as in ConvNeXt."""

    class Turned(nn.Module):
        def forward(self, x):
            return x.permute(0, 2, 3, 1)

    class Normed(nn.LayerNorm):
        def forward(self, x):
            return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)

    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.turn = nn.Conv2d(3, 4, 1), self.Normed(4), self.Turned()
        self.fc, self.act = nn.Linear(4, 16), nn.ReLU()
        kill(self.fc, 8)
        with torch.no_grad():
            self.norm.weight[:3] = 0

    def forward(self, x):
        return self.act(self.fc(self.turn(self.norm(self.conv(x)))))


def test_an_activation_has_its_channels_where_its_input_had_them(out):
    trial, outputs = saved(out, LastForAWhile(), torch.randn(2, 3, 5, 6))
    axes = {"conv": 1, "norm": 1, "fc": 3, "act": 3}
    names = {"LastForAWhile_output_0": 3, **{f"{name}_output_0": axis for name, axis in axes.items()}}
    assert shares(trial) == {name: dead(outputs[name], axis) for name, axis in names.items()}
    assert shares(trial)["act_output_0"] >= 0.5
    assert shares(trial)["norm_output_0"] == 0.75


def test_an_image_without_a_batch_has_its_channels_first(out):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    kill(model[0], 6)
    trial, outputs = saved(out, model, torch.randn(3, 7, 7))
    assert shares(trial) == {name: dead(output, 0) for name, output in outputs.items()}
    assert shares(trial)["1_output_0"] >= 0.75


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.attention = nn.LSTM(5, 7, batch_first=True), nn.MultiheadAttention(7, 1, batch_first=True)

    def forward(self, x):
        y, _ = self.lstm(x)
        return self.attention(y, y, y)[0]


def test_outputs_of_several_shapes(out):
    trial, _ = saved(out, Recurrent(), torch.randn(3, 4, 5))
    # The states of the LSTM are (1, 3, 7), what it gives (3, 4, 7).
    names = {"Recurrent_output_0", *(f"lstm_output_{i}" for i in range(3))}
    assert shares(trial).keys() == names | {f"attention_output_{i}" for i in range(2)}


@pytest.mark.parametrize("model, x", [(Images, (4, 3, 9, 9)), (Signals, (3, 2, 20))])
def test_on_an_accelerator_they_are_the_same(out, tmp_path, monkeypatch, model, x):
    x = torch.randn(x)
    torch.manual_seed(1)
    trial, _ = saved(out, model(), x)
    want = {kind: shares(trial, kind) for kind in ("dead_share", "saturated_share")}
    assert any(want["dead_share"].values())
    asked = []
    original = pending_steps.DeviceShares
    monkeypatch.setattr(pending_steps, "on_device", lambda tensor: True)
    monkeypatch.setattr(late_values, "on_device", lambda tensor: True)
    monkeypatch.setattr(pending_steps, "DeviceShares", lambda wanted: asked.extend(wanted) or original(wanted))
    torch.manual_seed(1)
    trial, _ = saved(str(tmp_path / "late"), model(), x)
    assert {kind: shares(trial, kind) for kind in want} == want
    assert len(asked) == len(want["dead_share"])
