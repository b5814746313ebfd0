"""The collection ``usage``: how a program uses optimizers, models and losses, against NumPy and what the test does."""

from __future__ import annotations

import gc

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from harness.nothing_compiled import nothing_compiled
from torch import nn
from torch.nn import functional

import smd_agent.pytorch as smd
from smd_agent.framework import optimizer_settings
from smd_agent.framework.weak_references import WeakIdentityMap
from smd_agent.pytorch.capture import fact_adapters

EVERY = smd.SaveConfig(save_interval=1)


@pytest.fixture(autouse=True)
def others_have_not_compiled():
    with nothing_compiled():
        yield


@pytest.fixture(autouse=True)
def titles(monkeypatch):
    """Optimizers of other tests may be alive, whose titles are taken."""
    monkeypatch.setattr(optimizer_settings, "_titles", WeakIdentityMap())


def hooked(out, *models, mode=smd.modes.TRAIN, **arguments):
    hook = smd.Hook(out, **{"save_config": EVERY, "include_collections": ["usage"], **arguments})
    for model in models:
        hook.register_module(model)
    if mode is not None:
        hook.set_mode(mode)
    return hook


def saved(hook):
    """All numbers of the collection, by name and global step."""
    hook.close()
    trial = smd.create_trial(hook.out_dir)
    found = {}
    for name in trial.tensor_names(collection="usage"):
        values = {step: trial.tensor(name).value(step) for step in trial.tensor(name).steps()}
        assert {value.shape for value in values.values()} == {()}
        found[name.removeprefix("usage/")] = {step: float(value) for step, value in values.items()}
    return found


def net():
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4))


def batch(size=16):
    return torch.randn(size, 6), torch.randint(0, 4, (size,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("to_none", [True, False])
def test_what_gradients_have_kept(out, dtype, to_none):
    torch.manual_seed(0)
    model = net().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    hook, expected = hooked(out, model), []
    for step in range(6):
        if step == 3:
            optimizer.zero_grad(set_to_none=to_none)
        x, y = batch()
        loss = functional.cross_entropy(model(x.to(dtype)), y)
        gradients = [p.grad.detach().float().numpy().reshape(-1) for p in model.parameters() if p.grad is not None]
        expected.append(np.linalg.norm(np.concatenate(gradients)) if gradients else 0)
        loss.backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=to_none)
    found = saved(hook)["optimizer/SGD/kept_gradient"]
    # What was cleared after the update of a step was not kept: of the third one, and of the last.
    expected[2] = expected[5] = 0
    assert expected[1] > 0 < expected[4]
    assert [found[step] for step in range(6)] == pytest.approx(expected, rel=1e-2 if dtype is torch.bfloat16 else 1e-5)


def test_nothing_is_said_of_a_step_whose_update_or_backward_pass_was_not_seen(out):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    hook = hooked(out, model)
    for step in range(4):
        x, y = batch()
        loss = functional.cross_entropy(model(x), y)
        if step == 1:
            for parameter, gradient in zip(
                model.parameters(), torch.autograd.grad(loss, [*model.parameters()]), strict=True
            ):
                parameter.grad = gradient
        else:
            loss.backward()
        optimizer.step()
    del x, y, loss, parameter, gradient
    found = saved(hook)["optimizer/SGD/kept_gradient"]
    assert [*found] == [0, 2, 3]


def test_gradients_of_a_model_that_is_gone_are_not_said_to_be_cleared(out):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    hook = hooked(out, model)
    for _ in range(3):
        x, y = batch()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    del model, optimizer
    gc.collect()
    assert [*saved(hook)["optimizer/SGD/kept_gradient"]] == [0, 1]


def test_parameters_that_no_module_owns(out):
    model = net()
    free = [nn.Parameter(torch.ones(2)) for _ in range(3)]
    elsewhere = nn.Linear(2, 2)
    frozen = nn.Parameter(torch.ones(2), requires_grad=False)
    optimizer = torch.optim.SGD([*model.parameters(), *free, *elsewhere.parameters(), frozen], 0.01)
    hook = hooked(out, model)
    for step in range(6):
        optimizer.zero_grad()
        x, y = batch()
        # The first one has a gradient, and the second one once.
        factor = free[0].sum() * (free[1].sum() if step == 2 else 1)
        (functional.cross_entropy(model(x), y) * factor).backward()
        if step == 4:
            with torch.no_grad():
                free[2].add_(1)
        optimizer.step()
    found = saved(hook)
    assert [*found["optimizer/SGD/unowned"].values()] == [2, 2, 1, 1, 0, 0]
    assert [*found["optimizer/SGD/with_gradient"].values()] == pytest.approx([5 / 9, 5 / 9, 6 / 9, 5 / 9, 5 / 9, 5 / 9])


def test_modules_are_looked_through_only_when_something_has_changed(out, monkeypatch):
    calls = []
    search = fact_adapters.living_modules
    monkeypatch.setattr(fact_adapters, "living_modules", lambda: calls.append(1) or search())
    model = net()
    free = [nn.Parameter(torch.ones(2))]
    hook = hooked(out, model)
    for parameters in ([*model.parameters()], [*model.parameters(), *free]):
        optimizer = torch.optim.SGD(parameters, 0.01)
        for _ in range(4):
            optimizer.zero_grad()
            x, y = batch()
            functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    hook.close()
    assert calls == [1]


def test_modes_of_layers(out):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Dropout(0.1), nn.Dropout(0.0))
            self.tail = nn.Sequential(nn.BatchNorm1d(6, track_running_stats=False), nn.Dropout(0.5), nn.LayerNorm(6))
            self.rows = nn.LSTM(6, 6, num_layers=2, dropout=0.1)
            self.one_row = nn.LSTM(6, 6)
            self.head = nn.Linear(6, 4)

        def forward(self, x):
            return self.head(self.tail(self.body(x)))

    model, plain = Net(), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*model.parameters(), *plain.parameters()], 0.01)
    hook = hooked(out, model, plain, mode=None)
    hook.recorder.follow_calls()
    for step in range(4):
        if step == 1:
            model.body.eval()
        plain(model(torch.randn(8, 6))).sum().backward()
        if step == 2:
            # Of a step's calls the first one counts.
            model.tail.eval()
            model(torch.randn(8, 6))
        optimizer.step()
        if step == 2:
            model.train()
            with torch.no_grad():
                model(torch.randn(8, 6))
    found = saved(hook)
    assert [*found["model/Net/training"].values()] == [1] * 5
    assert [*found["model/Net/dropout"].values()] == pytest.approx([1, 2 / 3, 2 / 3, 1, 1])
    assert [*found["model/Net/dropped"].values()] == [0.5] * 5
    assert [*found["model/Net/batch_norm"].values()] == [1, 0, 0, 1, 1]
    assert {name for name in found if name.startswith("model/Linear")} == {"model/Linear/training"}
    trial = smd.create_trial(hook.out_dir)
    assert trial.tensor("usage/model/Net/dropout").steps(mode=smd.modes.EVAL) == [0]


def test_what_losses_of_classes_are_given(out):
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    hook, inputs, labels = hooked(out, model), [], []
    for step in range(3):
        x, y = batch()
        y[: 4 * step] = -100
        output = model(x)
        if step == 1:
            output = output.softmax(1)
        inputs.append(output.detach().numpy().astype(np.float64))
        labels.append(y.numpy())
        nn.CrossEntropyLoss()(output.unsqueeze(2), y.unsqueeze(1)).backward()
        optimizer.step()
    found = {
        name.removeprefix("loss/cross_entropy_loss_0/"): [*values.values()]
        for name, values in saved(hook).items()
        if name.startswith("loss/cross")
    }
    assert found["activated"] == [0, 1, 0]
    assert found["classes"] == [4] * 3
    assert found["input_min"] == pytest.approx([array.min() for array in inputs])
    assert found["input_max"] == pytest.approx([array.max() for array in inputs])
    assert found["row_sum_error"] == pytest.approx([abs(array.sum(1) - 1).max() for array in inputs], abs=1e-6)
    assert found["labels"] == [(array != -100).sum() for array in labels]
    assert found["ignored"] == pytest.approx([(array == -100).mean() for array in labels])
    assert found["label_min"] == [array[array != -100].min() for array in labels]
    assert found["label_max"] == [array[array != -100].max() for array in labels]


def test_losses_of_other_kinds_shapes_and_numbers(out):
    torch.manual_seed(0)
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    hook = hooked(out, model)
    output = model(batch()[0])
    pixels = torch.randn(2, 3, 40, 40)
    loss = functional.binary_cross_entropy_with_logits(output.sigmoid().reshape(-1), torch.ones(64))
    loss = loss + nn.functional.nll_loss(output.log_softmax(1), torch.full((16,), 7), ignore_index=7)
    loss = loss + functional.cross_entropy(pixels, torch.randint(0, 3, (2, 40, 40)))
    loss = (
        loss
        + functional.cross_entropy(output[0], torch.tensor(2))
        + functional.cross_entropy(output, output.softmax(1))
    )
    for _ in range(6):
        loss = loss + functional.cross_entropy(output, torch.arange(16) % 4)
    loss.backward()
    optimizer.step()
    found = {name: value[0] for name, value in saved(hook).items() if name.startswith("loss/")}
    of_logits = {name.rpartition("/")[2]: value for name, value in found.items() if "binary" in name}
    probabilities = output.detach().sigmoid()
    expected = {"activated": 1, "input_min": float(probabilities.min()), "input_max": float(probabilities.max())}
    assert {name: of_logits[name] for name in expected} == pytest.approx(expected)
    assert found["loss/nll_loss_0/ignored"] == 1
    assert found["loss/nll_loss_0/label_min"] > found["loss/nll_loss_0/label_max"]
    assert found["loss/nll_loss_0/input_max"] < 0
    assert found["loss/cross_entropy_loss_0/classes"] == 3
    assert found["loss/cross_entropy_loss_0/labels"] == 3200
    assert found["loss/cross_entropy_loss_1/labels"] == 1
    # Of labels that are probabilities nothing is said, and of no more than four calls.
    assert "loss/cross_entropy_loss_2/labels" not in found
    assert found["loss/cross_entropy_loss_3/labels"] == 16
    assert "loss/cross_entropy_loss_4/classes" not in found


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_how_often_elements_come_in_losses_of_numbers(out):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    hook = hooked(out, model)
    output = model(batch()[0])
    pairs = [
        (functional.mse_loss, output, torch.ones(16, 4)),
        (functional.mse_loss, output[:, :1], torch.ones(16)),
        (functional.mse_loss, output, torch.ones(())),
        (functional.l1_loss, output[:, None], torch.ones(3, 4)),
        (functional.smooth_l1_loss, output[:1], torch.ones(5, 4)),
    ]
    sum(loss(input, target) for loss, input, target in pairs).backward()
    optimizer.step()
    found = {name.removeprefix("loss/"): value[0] for name, value in saved(hook).items() if name.startswith("loss/")}
    expected = {"mse_loss_0": (1, 1), "mse_loss_1": (16, 16), "mse_loss_2": (1, 64)}
    expected |= {"l1_loss_0": (3, 16), "smooth_l1_loss_0": (5, 1)}
    assert {name: (found[f"{name}/input_repeated"], found[f"{name}/target_repeated"]) for name in expected} == expected


def trained(model, optimizer):
    for _ in range(4):
        x, y = batch()
        loss = nn.CrossEntropyLoss()(model(x), y) + functional.binary_cross_entropy_with_logits(
            model(x), torch.ones(16, 4)
        )
        loss.backward()
        optimizer.step()
    return torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()]), torch.get_rng_state()


def test_the_training_is_the_same_and_nothing_is_saved_unasked(out):
    results = []
    for collections in (None, ["usage"], ["weights"]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Dropout(0.2), nn.Linear(5, 4))
        optimizer = torch.optim.AdamW([*model.parameters(), nn.Parameter(torch.ones(1))], 0.01)
        if collections is None:
            results.append(trained(model, optimizer))
            continue
        hook = hooked(f"{out}/{collections[0]}", model, include_collections=collections)
        results.append(trained(model, optimizer))
        names = {name.partition("/")[0] for name in smd.create_trial(_closed(hook)).tensor_names()}
        assert ("usage" in names) is (collections == ["usage"])
    for weights, state in results[1:]:
        assert torch.equal(weights, results[0][0])
        assert torch.equal(state, results[0][1])


def _closed(hook):
    hook.close()
    return hook.out_dir
