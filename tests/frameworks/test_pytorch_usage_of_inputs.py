"""What models, layers and losses are given, in the collection ``usage``, against NumPy and what the test does."""

from __future__ import annotations

import gc
import math
import weakref

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


def saved(out, model, *inputs, loss=lambda output: output.sum(), mode=smd.modes.TRAIN, collections=("usage",)):
    """The numbers of one step, by name."""
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=[*collections])
    hook.register_module(model)
    hook.set_mode(mode)
    loss(model(*inputs)).backward()
    hook.close()
    trial = smd.create_trial(hook.out_dir)
    names = trial.tensor_names(collection="usage") if "usage" in trial.collections() else []
    return {name.removeprefix("usage/"): float(trial.tensor(name).value(0)) for name in names}


def of_input(found, number=0):
    start = f"input/Net_{number}/"
    return {name.removeprefix(start): value for name, value in found.items() if name.startswith(start)}


class Net(nn.Module):
    def __init__(self, change=lambda x: x, layer=lambda: nn.Linear(6, 3)):
        super().__init__()
        self.change, self.layer = change, layer()

    def forward(self, x, *others):
        return self.layer(self.change(x)).float()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [5, 20_000])
def test_numbers_of_a_table(out, dtype, rows):
    torch.manual_seed(0)
    x = (torch.randn(rows, 6) * torch.tensor([1, 100.0, 1, 1e-2, 0, 3]) + 2 * torch.eye(6)[5]).to(dtype)
    found = of_input(saved(out, Net(lambda x: x.float()), x))
    part = x.double().numpy()[:: -(-rows * 6 // 16_384)]
    scales = np.sqrt((part**2).mean(0))
    near = {"rel": 1e-4}
    assert (found["min"], found["max"]) == (part.min(), part.max())
    assert found["mean"] == pytest.approx(part.mean(), rel=1e-3, abs=1e-3)
    assert found["std"] == pytest.approx(part.std(), **near)
    assert (found["largest_column"], found["smallest_column"], found["not_finite"]) == (1, 3, 0)
    assert found["largest_scale"] == pytest.approx(scales[1], **near)
    assert found["smallest_scale"] == pytest.approx(scales[3], **near)


def test_numbers_of_other_shapes(out):
    torch.manual_seed(0)
    image = torch.rand(2, 3, 200, 200)
    found = of_input(saved(f"{out}/image", Net(layer=lambda: nn.Conv2d(3, 2, 3)), image))
    assert "largest_scale" not in found
    assert found["as_it_is"] == 1
    assert found["mean"] == pytest.approx(0.5, abs=0.02)
    assert found["std"] == pytest.approx(math.sqrt(1 / 12), abs=0.02)
    infinite = torch.zeros(2, 5, 6)
    infinite[0, 1] = -math.inf
    found = of_input(saved(f"{out}/infinite", Net(lambda x: x.clamp(min=0)), infinite))
    assert (found["min"], found["not_finite"]) == (-math.inf, pytest.approx(0.1))
    empty = of_input(saved(f"{out}/nothing", Net(), torch.zeros(3, 6), torch.zeros(4).long(), torch.zeros(0)))
    assert (empty["largest_scale"], empty["smallest_scale"]) == (0, math.inf)


@pytest.mark.parametrize("mode", [smd.modes.TRAIN, smd.modes.EVAL])
@pytest.mark.parametrize("rows", [21, 30, 50, 83, 84])
def test_numbers_of_images_of_any_number(out, rows, mode):
    torch.manual_seed(0)
    images = torch.rand(rows, 1, 28, 28)
    found = of_input(saved(out, Net(layer=lambda: nn.Conv2d(1, 2, 3)), images, mode=mode))
    length = images.numel() // 64
    part = images.reshape(-1)[: 64 * length].reshape(64, length)[:, :256].numpy()
    expected = {"min": part.min(), "max": part.max(), "mean": part.mean(), "std": part.std(), "not_finite": 0}
    expected |= {"as_it_is": 1}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)


def test_inputs_are_numbered_as_they_are_given(out):
    found = saved(out, Net(), torch.randn(4, 6), torch.arange(3), [torch.ones(2), {"more": torch.zeros(5)}])
    assert {name.split("/")[1] for name in found if name.startswith("input/")} == {
        *("Net_0", "Net_1", "Net_2", "Net_3"),
    }


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64])
def test_numbers_of_integers(out, dtype):
    x = torch.randint(1, 100, (20, 6)).to(dtype)
    x[:, 2] = 120
    found = of_input(saved(out, Net(lambda x: x.float()), x))
    part = x.double().numpy()
    expected = {"min": part.min(), "max": part.max(), "mean": part.mean(), "std": part.std(), "integers": 1}
    scales = np.sqrt((part**2).mean(0))
    expected |= {"largest_scale": scales[2], "largest_column": 2}
    expected |= {"smallest_scale": scales.min(), "smallest_column": scales.argmin()}
    # The layer is given what the model has made of them.
    expected |= {"not_finite": 0, "as_it_is": 0}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)


def test_what_is_neither_floats_nor_integers_has_no_numbers(out):
    found = saved(out, Net(), torch.randn(4, 6), torch.ones(4, 6).bool(), torch.ones(4, 6) * 1j)
    assert {name.split("/")[1] for name in found if name.startswith("input/")} == {"Net_0"}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "other",
    [
        lambda: torch.quantize_per_tensor(torch.randn(30), 0.1, 0, torch.quint8),
        lambda: torch.quantize_per_channel(torch.randn(3, 4), torch.ones(3), torch.zeros(3), 0, torch.qint8),
        lambda: torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(2, 4)]),
        lambda: torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(2, 4)], layout=torch.jagged),
        lambda: torch.empty(9, dtype=torch.float8_e4m3fn),
        lambda: torch._efficientzerotensor(5),
    ],
    ids=["quantised", "quantised by channel", "nested", "jagged", "float8", "lazy zeros"],
)
def test_inputs_of_kinds_that_cannot_be_looked_at(out, other, capsys):
    hook_saves = ("usage", "input_digests", "inputs")
    found = saved(out, Net(), torch.randn(4, 6), other(), collections=hook_saves)
    assert of_input(found)["as_it_is"] == 1
    assert "failed" not in capsys.readouterr().err
    trial = smd.create_trial(out)
    assert "input_digest/Net_0" in trial.tensor_names()


def in_place(x):
    return x.div_(255)


@pytest.mark.parametrize(
    "change, layer, known",
    [
        (lambda x: x, lambda: nn.Linear(6, 3), 1),
        (lambda x: x[:, None].transpose(0, 1), lambda: nn.GRUCell(6, 3), None),
        (lambda x: x.flatten(1)[:, :5], lambda: nn.Linear(5, 3), 1),
        (lambda x: x, lambda: nn.Sequential(nn.Dropout(0.0), nn.Identity(), nn.Linear(6, 3)), 1),
        (lambda x: x[:, None], lambda: nn.Conv1d(1, 3, 3), 1),
        (lambda x: x / 255, lambda: nn.Linear(6, 3), 0),
        (in_place, lambda: nn.Linear(6, 3), 0),
        (lambda x: x, lambda: nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3)), 0),
        (lambda x: x, lambda: nn.LayerNorm(6), None),
    ],
    ids=["linear", "cell", "columns", "behind others", "signal", "scaled", "in place", "normalised", "no weights"],
)
def test_whether_a_layer_gets_the_input(out, change, layer, known):
    if known is None and isinstance(layer(), nn.GRUCell):
        change, known = (lambda x: x), 1
    assert of_input(saved(out, Net(change, layer), torch.randn(4, 6))).get("as_it_is") == known


def test_layers_that_are_saved_are_no_other_ones(out):
    found = saved(out, Net(lambda x: x / 2), torch.randn(4, 6), collections=("usage", "layers"))
    assert of_input(found)["as_it_is"] == 0


def test_which_axes_layers_are_given(out):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows, self.first = nn.LSTM(6, 6), nn.LSTM(6, 6, batch_first=True)
            self.seeing, self.masked = nn.MultiheadAttention(6, 2), nn.MultiheadAttention(6, 2, batch_first=True)
            self.crossed = nn.MultiheadAttention(6, 2)

        def forward(self, x):
            x = self.first(self.rows(x)[0])[0]
            y = self.seeing(x, x, x)[0]
            mask = torch.zeros(5, 5).bool()
            y = self.masked(query=y, key=y, value=y, attn_mask=mask)[0]
            y = self.masked(y, y, y)[0]
            return self.crossed(x, y, y)[0] + self.rows(x[:, 0])[0][:, None]

    found = {name: value for name, value in saved(out, Both(), torch.randn(4, 5, 6)).items() if "layer/" in name}
    # Which of their steps are used is another fact.
    of_steps = ("last_only", "rows", "padded_rows", "padding", "steps")
    found = {name: value for name, value in found.items() if name.rpartition("/")[2] not in of_steps}
    axes = {"axis_0": 4, "axis_1": 5, "batch": 4}
    expected = {f"layer/{of}/{name}": size for of in ("rows", "seeing", "crossed") for name, size in axes.items()}
    expected |= {"layer/seeing/length": 4, "layer/seeing/masked": 0}
    assert found == {**expected, "layer/masked/length": 5, "layer/masked/masked": 1}


def test_what_losses_compare_with(out):
    def loss(output):
        found = functional.mse_loss(output, torch.randn(8, 3))
        found = found + nn.CrossEntropyLoss()(input=output, target=torch.zeros(8).long())
        return found + functional.cross_entropy(output, torch.rand(8, 3))

    found = saved(out, Net(), torch.randn(8, 6), loss=loss)
    sizes = {name: value for name, value in found.items() if name.startswith("target/")}
    expected = {"mse_loss_0": (8, 3, 24), "cross_entropy_loss_0": (8, 1, 8), "cross_entropy_loss_1": (8, 3, 24)}
    facts = ("axis_0", "axis_1", "elements")
    pairs = ((name, zip(facts, numbers, strict=True)) for name, numbers in expected.items())
    assert sizes == {f"target/{name}/{fact}": number for name, numbers in pairs for fact, number in numbers}


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 50)

    def forward(self, x):
        return self.embedding(x)


@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("left_out", [0, 1])
def test_whether_targets_are_the_next_tokens(out, flat, left_out):
    torch.manual_seed(0)
    tokens = torch.randint(0, 50, (70, 81))
    x, y = tokens[:, :-1], tokens[:, 1 : 81 - left_out].clone()
    y[0, :9] = -100
    y[1, :3] = 0

    def loss(output):
        output = output[:, : 80 - left_out]
        if flat:
            return functional.cross_entropy(output.reshape(-1, 50), y.reshape(-1))
        return functional.cross_entropy(output.transpose(1, 2), y)

    found = {name.rpartition("/")[2]: value for name, value in saved(out, Words(), x, loss=loss).items()}
    later, before, targets = (array.numpy()[:64, :63] for array in (x[:, 1:], x[:, :-1], y))
    compared = (later != before) & (targets >= 0)
    assert (found["length_1"], found["compared_1"]) == (80, compared.sum())
    assert found["next_1"] == pytest.approx((targets == later)[compared].mean())
    assert 0.99 < found["next_1"] < 1
    assert ("next_0" in found) is not bool(left_out)


def test_nothing_is_said_of_layers_and_targets_in_evaluation(out):
    found = saved(out, nn.LSTM(6, 6), torch.randn(4, 5, 6), loss=lambda out: out[0].sum(), mode=smd.modes.EVAL)
    assert {name.partition("/")[0] for name in found} == {"input", "model"}


def test_inputs_are_not_kept(out):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["usage"])
    model = Words()
    # A bundle has the inputs of a step that goes wrong, which are kept until then.
    hook.keep_bundles(0)
    hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    x = torch.randint(0, 50, (4, 5))
    reference = weakref.ref(x)
    model(x).sum()
    del x
    gc.collect()
    assert reference() is None
    hook.close()
