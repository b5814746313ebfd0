"""Updates, settings of optimizers, digests of inputs, and what is known of parameters, against NumPy."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import nn

import smd_agent.pytorch as smd
from smd_agent.framework import optimizer_settings
from smd_agent.framework.training_facts import LOOKED_AT
from smd_agent.framework.weak_references import WeakIdentityMap

EVERY = smd.SaveConfig(save_interval=1)
COLLECTIONS = ["updates", "optimizer", "input_digests", "parameters"]


@pytest.fixture(autouse=True)
def titles(monkeypatch):
    """Optimizers of other tests may be alive, whose titles are taken."""
    monkeypatch.setattr(optimizer_settings, "_titles", WeakIdentityMap())


def hooked(out, *models, **arguments):
    hook = smd.Hook(out, save_config=EVERY, include_collections=COLLECTIONS, **arguments)
    for model in models:
        hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    return hook


def trial_of(hook):
    hook.close()
    return smd.create_trial(hook.out_dir)


def arrays(model):
    return {name: parameter.detach().numpy().astype(np.float64) for name, parameter in model.named_parameters()}


OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=1e-3),
    "Adagrad": lambda parameters: torch.optim.Adagrad(parameters, lr=1e-2),
    "LBFGS": lambda parameters: torch.optim.LBFGS(parameters, lr=0.1, max_iter=3),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_updates_are_what_the_optimizer_has_changed(out, kind, dtype):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)).to(dtype)
    optimizer = OPTIMIZERS[kind](model.parameters())
    hook, expected = hooked(out, model), []
    for _ in range(3):
        x, y = torch.randn(4, 6, dtype=dtype), torch.randn(4, 3, dtype=dtype)

        def closure(x=x, y=y):
            optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            return loss

        before = {name: array.copy() for name, array in arrays(model).items()}
        if kind == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        expected.append(
            {
                name: (np.linalg.norm(after - before[name]), np.linalg.norm(before[name]))
                for name, after in arrays(model).items()
            }
        )
    trial = trial_of(hook)
    for step, moved in enumerate(expected):
        for name, (update, length) in moved.items():
            found = [
                float(trial.tensor(f"{prefix}/Sequential_{name}").value(step, mode=smd.modes.TRAIN))
                for prefix in ("update", "update_ratio")
            ]
            assert found == pytest.approx([update, update / length], rel=2e-5 if dtype is torch.float32 else 1e-6)
    assert [*trial.tensor("update/Sequential_0.weight").steps(mode=smd.modes.TRAIN)] == [0, 1, 2]


def test_of_a_large_parameter_a_part_stands_for_all(out):
    torch.manual_seed(0)
    model = nn.Linear(700, 600)
    assert model.weight.numel() > 4 * LOOKED_AT
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    hook = hooked(out, model)
    before = arrays(model)["weight"].copy()
    model(torch.randn(8, 700)).pow(2).mean().backward()
    optimizer.step()
    update = np.linalg.norm(arrays(model)["weight"] - before)
    trial = trial_of(hook)
    assert trial.tensor("update/Linear_weight").value(0) == pytest.approx(update, rel=0.02)
    ratio = trial.tensor("update_ratio/Linear_weight").value(0)
    assert ratio == pytest.approx(update / np.linalg.norm(before), rel=0.02)


def test_what_does_not_move_and_what_moves_from_nothing(out):
    model = nn.Linear(4, 3)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD([{"params": [model.weight], "lr": 0.1}, {"params": [model.bias], "lr": 0.0}])
    hook = hooked(out, model)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    trial = trial_of(hook)
    assert trial.tensor("update_ratio/Linear_weight").value(0) == 1
    assert trial.tensor("update/Linear_bias").value(0) == trial.tensor("update_ratio/Linear_bias").value(0) == 0


def test_settings_are_those_that_the_update_used(out):
    model, other = nn.Linear(4, 3), nn.Linear(4, 3)
    optimizer = torch.optim.AdamW(
        [{"params": [model.weight]}, {"params": [model.bias], "weight_decay": 0.0}], lr=0.1, betas=(0.8, 0.95)
    )
    second = torch.optim.SGD(other.parameters(), lr=torch.tensor(0.5))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    hook = hooked(out, model, other)
    for _ in range(3):
        (model(torch.ones(2, 4)) + other(torch.ones(2, 4))).sum().backward()
        optimizer.step()
        second.step()
        scheduler.step()
    trial = trial_of(hook)
    values = {
        name: [float(trial.tensor(name).value(step)) for step in trial.tensor(name).steps()]
        for name in trial.tensor_names(collection="optimizer")
    }
    assert values["optimizer/AdamW/group_0/lr"] == pytest.approx([0.1, 0.05, 0.025])
    assert values["optimizer/AdamW/group_1/weight_decay"] == [0.0] * 3
    assert values["optimizer/AdamW/group_0/beta_2"] == [0.95] * 3
    assert values["optimizer/SGD/lr"] == [0.5] * 3
    assert "optimizer/SGD/momentum" in values


def digests(trial, name="Linear", call=0):
    found = trial.tensor(f"input_digest/{name}_{call}")
    values = [found.value(step, mode=smd.modes.TRAIN) for step in found.steps(mode=smd.modes.TRAIN)]
    assert {value.dtype for value in values} == {np.dtype(np.int64)}
    return [int(value[0]) for value in values]


def test_batches_that_come_again_have_the_same_digest(out):
    torch.manual_seed(0)
    model = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = hooked(out, model)
    batches = [torch.randn(8, 6) for _ in range(3)]
    batches.append(batches[0].flip(0))
    changed = batches[1].clone()
    changed[3, 2] = torch.nextafter(changed[3, 2], torch.tensor(9.0))
    batches += [changed, batches[2].clone(), batches[0].T.contiguous().T, batches[0][:4]]
    for batch in batches:
        model(batch).sum().backward()
        optimizer.step()
    found = digests(trial_of(hook))
    assert found[5] == found[2]
    assert found[6] == found[0]
    assert len({*found}) == 6


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "bfloat16", "float64", "complex64"])
def test_inputs_of_every_dtype_have_a_digest(out, dtype):
    class Echo(nn.Linear):
        def forward(self, x, scale=1):
            return super().forward(torch.ones(2, 4)) * scale

    model = Echo(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = hooked(out, model)
    kind = getattr(torch, dtype)
    for x in (torch.ones(300, 300), torch.ones(300, 300), torch.zeros(300, 300)):
        model(x.to(kind), scale=2).sum().backward()
        optimizer.step()
    first, second, third = digests(trial_of(hook), "Echo")
    assert first == second != third


def test_each_parameter_is_trained_frozen_forgotten_or_not_reached(out):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.backbone, self.head = nn.Linear(4, 4, bias=False), nn.Linear(4, 3, bias=False)
            self.unused, self.late = nn.Linear(4, 3, bias=False), nn.Linear(4, 4, bias=False)
            self.backbone.requires_grad_(False)

        def forward(self, x):
            return self.head(self.late(self.backbone(x)))

    model = Net()
    optimizer = torch.optim.SGD([*model.head.parameters(), *model.unused.parameters()], lr=0.1)
    hook = hooked(out, model)
    for _ in range(3):
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
    trial = trial_of(hook)
    facts = trial.tensor("parameters/Net")
    # It is told again only when something has changed.
    assert facts.steps(mode=smd.modes.TRAIN) == [0]
    told = json.loads(str(facts.value(0, mode=smd.modes.TRAIN)[0]))
    assert told == {
        "Net_backbone.weight": {"requires_grad": False, "optimizer": None, "gradient": False},
        "Net_head.weight": {"requires_grad": True, "optimizer": "SGD/group_0", "gradient": True},
        "Net_unused.weight": {"requires_grad": True, "optimizer": "SGD/group_0", "gradient": False},
        "Net_late.weight": {"requires_grad": True, "optimizer": None, "gradient": True},
    }


def test_each_parameter_is_told_of_as_its_own_optimizer_finds_it(out):
    class Critic(nn.Linear):
        pass

    class Generator(nn.Linear):
        pass

    critic, generator = Critic(3, 1), Generator(2, 3)
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (critic, generator)]
    hook = hooked(out, critic, generator)
    for step in range(4):
        if step == 3:
            generator.bias.requires_grad_(False)
        fake = generator(torch.randn(4, 2))
        for samples, optimizer in zip((fake.detach(), fake), optimizers, strict=True):
            optimizer.zero_grad()
            critic(samples).mean().backward()
            optimizer.step()
        generator.zero_grad()
    trial = trial_of(hook)
    assert trial.tensor("parameters/Critic").steps(mode=smd.modes.TRAIN) == [0]
    # Frozen before the fourth step, and not in the third.
    assert trial.tensor("parameters/Generator").steps(mode=smd.modes.TRAIN) == [0, 3]
    told = json.loads(str(trial.tensor("parameters/Generator").value(0)[0]))
    assert {(fact["requires_grad"], fact["gradient"]) for fact in told.values()} == {(True, True)}
    told = json.loads(str(trial.tensor("parameters/Generator").value(3)[0]))
    assert told["Generator_bias"] == {"requires_grad": False, "optimizer": "SGD_2/group_0", "gradient": False}


def test_none_of_it_is_a_weight_and_nothing_is_saved_unasked(out):
    model = nn.Linear(4, 3)
    hook = smd.Hook(out, save_config=EVERY, include_collections=["weights", "biases"])
    hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    names = trial_of(hook).tensor_names()
    assert names == ["Linear_bias", "Linear_weight", "Loss_output_0"]


@pytest.mark.parametrize("fused", [False, True])
def test_the_scale_of_each_step_and_the_updates_that_it_skips(out, fused):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
    hook, scales, changed = hooked(out, model), [], []
    for step in range(6):
        before = arrays(model)
        optimizer.zero_grad()
        loss = model(torch.randn(3, 4)).square().mean() * (float("inf") if step in (1, 4) else 1)
        scales.append(scaler.get_scale())
        scaler.scale(loss).backward()
        if step == 3:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        changed.append(any((value != before[name]).any() for name, value in arrays(model).items()))
    trial = trial_of(hook)
    saved = {kind: trial.tensor(f"optimizer/GradScaler/{kind}") for kind in ("scale", "skipped")}
    assert [saved["scale"].value(step, smd.modes.TRAIN) for step in range(6)] == scales
    assert [saved["skipped"].value(step, smd.modes.TRAIN) for step in range(6)] == [not one for one in changed]
    assert changed.count(False) == 2
    assert {*scales} == {512, 1024}
    assert saved["skipped"].value(0, smd.modes.TRAIN).shape == ()
    collections = trial.collections()
    assert [name for name in collections if any(map(collections[name].matches, ["optimizer/GradScaler/scale"]))] == [
        "optimizer"
    ]


def test_two_scalers_and_one_with_two_optimizers(out):
    torch.manual_seed(0)
    models = [nn.Linear(2, 1) for _ in range(3)]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
    first, second = (torch.amp.GradScaler("cpu", init_scale=scale) for scale in (4.0, 512.0))
    hook = hooked(out, *models)
    for overflows in (False, True):
        losses = [model(torch.ones(1, 2)).sum() for model in models]
        losses[0] = losses[0] * (float("nan") if overflows else 1)
        first.scale(losses[0] + losses[1]).backward()
        second.scale(losses[2]).backward()
        for scaler, optimizer in zip((first, first, second), optimizers, strict=True):
            scaler.step(optimizer)
        first.update()
        second.update()
    trial = trial_of(hook)
    names = trial.tensor_names(regex="scale$|skipped$")
    rows = sorted([float(trial.tensor(name).value(step, smd.modes.TRAIN)) for step in (0, 1)] for name in names)
    assert rows == [[0, 0], [0, 1], [4, 4], [512, 512]]


def test_scalers_are_not_watched_for_what_is_not_saved(out):
    model = nn.Linear(2, 1)
    hook = smd.Hook(out, save_config=EVERY, include_collections=["weights"])
    hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    usual = torch.amp.GradScaler.step
    model(torch.ones(1, 2)).sum().backward()
    assert torch.amp.GradScaler.step is usual
    assert trial_of(hook).steps() == [0]


def test_a_scaler_that_is_off_has_no_scale_and_a_step_that_is_not_saved_is_not_watched(out):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scalers = [torch.amp.GradScaler("cpu", enabled=False), torch.amp.GradScaler("cpu", init_scale=2.0)]
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=2), include_collections=["optimizer"])
    hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    steps = []
    for step in range(4):
        scaler = scalers[step > 1]
        loss = model(torch.ones(1, 2)).sum()
        steps.append(torch.amp.GradScaler.step)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    trial = trial_of(hook)
    assert trial.tensor("optimizer/GradScaler/scale").steps(smd.modes.TRAIN) == [2]
    assert steps[1] is steps[3] is not steps[0]
