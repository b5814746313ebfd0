"""What ``usage`` tells of losses' labels, guesses and targets, against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from harness.nothing_compiled import nothing_compiled
from torch import nn
from torch.nn import functional

import smd_agent.pytorch as smd


@pytest.fixture(autouse=True)
def others_have_not_compiled():
    with nothing_compiled():
        yield


@pytest.fixture
def facts(out):
    """Train some steps on what a function computes of a model's output, and return the facts of losses by step."""

    def make(loss, steps, outputs=4, rows=16, mode=smd.modes.TRAIN):
        torch.manual_seed(0)
        model = nn.Linear(6, outputs)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["usage"])
        hook.register_module(model)
        hook.set_mode(mode)
        for step in range(steps):
            loss(model(torch.randn(rows, 6)), step).backward()
            optimizer.step()
        hook.close()
        trial = smd.create_trial(out)
        names = [name for name in trial.tensor_names(collection="usage") if name.startswith("usage/loss/")]
        return {
            name.removeprefix("usage/loss/"): {
                step: float(trial.tensor(name).value(step)) for step in trial.tensor(name).steps()
            }
            for name in names
        }

    return make


def shares_of(labels, classes=4, weight=None):
    counts = np.bincount(labels[labels >= 0], minlength=classes) * (1 if weight is None else weight)
    return counts / counts.sum()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_what_a_guess_would_cost(facts, reduction, smoothing):
    torch.manual_seed(1)
    labels = [torch.multinomial(torch.tensor([0.6, 0.3, 0.1]), 16, replacement=True) for _ in range(8)]
    labels[2][:8] = -100
    losses = []

    def loss(output, step):
        mean = functional.cross_entropy(output, labels[step], label_smoothing=smoothing)
        losses.append(mean.item())
        of_labels = nn.CrossEntropyLoss(reduction=reduction, label_smoothing=smoothing)
        return of_labels(output, labels[step]).sum()

    found = {name.partition("/")[2]: numbers for name, numbers in facts(loss, 8).items() if "loss_1/" in name}
    assert [*found["loss"].values()] == pytest.approx(losses, rel=1e-5)
    # From 20 labels for each class on.
    assert [*found["guess"]] == [4, 5, 6, 7]
    for step, guess in found["guess"].items():
        known = shares_of(np.concatenate([one.numpy() for one in labels[: step + 1]]))
        own, known = ((1 - smoothing) * s + smoothing / 4 for s in (shares_of(labels[step].numpy()), known))
        assert guess == pytest.approx(-sum(p * math.log(q) for p, q in zip(own, known, strict=True) if p), rel=1e-5)
    sure, rest = 1 - smoothing * 3 / 4, smoothing / 4
    least = -sure * math.log(sure) - (3 * rest * math.log(rest) if rest else 0)
    assert [*found["least"].values()] == pytest.approx([least] * 4, abs=1e-7)


def test_weights_of_classes_count(facts):
    labels = torch.arange(100).remainder(10).clamp(max=3)
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0])
    loss = nn.CrossEntropyLoss(weight)
    found = facts(lambda output, step: loss(output, labels), 1, rows=100)
    shares = shares_of(labels.numpy(), weight=weight.numpy())
    assert found["cross_entropy_loss_0/guess"][0] == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-5)
    assert found["cross_entropy_loss_0/top_label"][0] == 3
    assert found["cross_entropy_loss_0/top_share"][0] == pytest.approx(0.7)


@pytest.mark.parametrize("shape", [(60,), (60, 1), (60, 3), (60, 3, 2)])
def test_a_guess_of_yes_and_no_is_by_column(facts, shape):
    torch.manual_seed(2)
    targets = [torch.rand(shape).round(decimals=1) for _ in range(2)]
    columns = math.prod(shape[1:])

    def loss(output, step):
        logits = output[:, :columns].reshape(shape)
        plain = functional.binary_cross_entropy(logits.sigmoid(), targets[step])
        # With weights nothing can be compared.
        odd = functional.binary_cross_entropy_with_logits(logits, targets[step], pos_weight=torch.tensor(2.0))
        return functional.binary_cross_entropy_with_logits(logits, targets[step]) + plain + odd

    found = facts(loss, 2, outputs=6, rows=60)
    tables = [target.numpy().reshape(60, columns).astype(np.float64) for target in targets]
    known, own = np.concatenate(tables).mean(0), tables[1].mean(0)
    guess = -(own * np.log(known) + (1 - own) * np.log(1 - known)).mean()
    p = tables[1].clip(1e-12, 1 - 1e-12)
    least = -(p * np.log(p) + (1 - p) * np.log(1 - p)).mean()
    for name in ("binary_cross_entropy_loss_0", "binary_cross_entropy_with_logits_loss_1"):
        numbers = {fact: found[f"{name}/{fact}"][1] for fact in ("guess", "least")}
        assert numbers == pytest.approx({"guess": guess, "least": least}, rel=1e-4)
    assert "binary_cross_entropy_with_logits_loss_0/guess" not in found


def test_nothing_of_a_loss_that_is_not_trained(facts):
    def loss(output, step):
        with torch.no_grad():
            functional.cross_entropy(output, torch.zeros(100, dtype=torch.int64))
        return output.sum()

    found = facts(loss, 1, rows=100)
    assert found["cross_entropy_loss_0/top_share"][0] == 1
    assert not {"cross_entropy_loss_0/loss", "cross_entropy_loss_0/guess"} & {*found}


@pytest.mark.parametrize("flat", ["view", "reshape", "two dimensions"])
def test_labels_at_the_ends_of_rows(facts, flat):
    labels = torch.tensor([[1, 2, 0, 0], [1, 0, 3, 0], [2, 3, 1, 1], [0, 0, 0, 0]])

    def loss(output, step):
        logits = output.view(4, 4, 4)
        if flat == "two dimensions":
            return functional.cross_entropy(logits.transpose(1, 2), labels)
        if flat == "reshape":
            return functional.cross_entropy(logits[:, :-1].reshape(-1, 4), labels[:, :-1].reshape(-1))
        return functional.cross_entropy(logits.view(-1, 4), labels.view(-1))

    found = facts(loss, 1)
    assert found["cross_entropy_loss_0/top_label"][0] == 0
    expected = (4 / 5, 5 / 12) if flat == "reshape" else (7 / 8, 8 / 16)
    assert found["cross_entropy_loss_0/top_at_end"][0] == pytest.approx(expected[0])
    assert found["cross_entropy_loss_0/top_share"][0] == pytest.approx(expected[1])


def test_labels_in_no_rows_have_no_ends(facts):
    def loss(output, step):
        images = output.view(2, 4, 2, 4)
        return functional.cross_entropy(output, torch.arange(16) % 4) + functional.cross_entropy(
            images, torch.zeros(2, 2, 4, dtype=torch.int64)
        )

    assert not [name for name in facts(loss, 1) if name.endswith("top_at_end")]


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_what_a_target_is_beside_an_activation(facts, name):
    target = torch.linspace(-2, 3, 64).reshape(16, 4)

    def loss(output, step):
        function = getattr(functional, name)
        return function(output.tanh(), target) + function(target, output.relu()[:, :4]) + function(output, target)

    found = {key.removeprefix(f"{name}_"): value[0] for key, value in facts(loss, 1).items()}
    others = {key: found.pop(key) for key in [*found] if key.endswith(("/alone", "/factor", "spread"))}
    array = target.numpy()
    ends = {"target_min": -2, "target_max": 3}
    of_tanh = {"reach_min": -1, "reach_max": 1, "out_of_reach": (abs(array) > 1).mean(), **ends}
    of_relu = {"reach_min": 0, "out_of_reach": (array < 0).mean(), **ends}
    for number, expected in enumerate((of_tanh, of_relu, {})):
        numbers = {key.partition("/")[2]: value for key, value in found.items() if key.startswith(f"{number}/")}
        repeated = {"input_repeated": 1, "target_repeated": 1}
        assert numbers == pytest.approx({**repeated, **expected})
        # The pass starts from a sum of the three.
        assert (others[f"{number}/factor"], others[f"{number}/alone"]) == (1, 0)
        assert others[f"{number}/target_spread"] == pytest.approx(array.std())
