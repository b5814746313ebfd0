"""The PyTorch hook on real models: what is saved under which name, and that its values are the right ones."""

from __future__ import annotations

import copy

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
import torch.nn.functional as F
from torch import nn

import smd_agent.pytorch as smd
from smd_agent import session

EVERY = smd.SaveConfig(save_interval=1)


class Net(nn.Module):
    """The model of the reference's table of names: a module used twice, and a block."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.bn1 = nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.block = nn.Sequential(nn.Conv2d(4, 4, 3), nn.MaxPool2d(2))
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.block(x))
        return self.fc(x.flatten(1))


PARAMETERS = ["conv1.weight", "conv1.bias", "bn1.weight", "bn1.bias", "block.0.weight", "block.0.bias"]
PARAMETERS += ["fc.weight", "fc.bias"]
LAYERS = ["conv1", "bn1", "relu", "block.0", "block.1", "block", "fc"]


def data(n=4, size=8):
    return torch.randn(n, 1, size, size), torch.randint(0, 3, (n,))


def trial_of(hook):
    hook.close()
    return smd.create_trial(hook.out_dir)


def value(trial, name, step=0, mode=smd.modes.GLOBAL):
    return trial.tensor(name).value(step, mode=mode)


def small():
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))


def one_step(model, optimizer, criterion=None, x=None, y=None):
    x = torch.randn(6, 5) if x is None else x
    y = torch.randint(0, 3, (6,)) if y is None else y
    optimizer.zero_grad()
    loss = (criterion or nn.CrossEntropyLoss())(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.detach()


def test_all_names_are_those_of_the_reference(out):
    model, criterion = Net(), nn.CrossEntropyLoss()
    hook = smd.Hook(out, save_all=True)
    hook.register_module(model)
    hook.register_loss(criterion)
    x, y = data()
    criterion(model(x), y).backward()
    io_names = [f"{layer}_{kind}_0" for layer in (*LAYERS, "Net") for kind in ("input", "output")]
    losses = [f"CrossEntropyLoss_{name}" for name in ("input_0", "input_1", "output_0")]
    names = [f"{of}Net_{name}" for name in PARAMETERS for of in ("", "gradient/")]
    found = [name for name in trial_of(hook).tensor_names() if not name.startswith(("usage/", "line/"))]
    assert found == sorted([*names, *io_names, "relu_input_1", "relu_output_1", *losses, "input_digest/Net_0"])


def test_values_are_those_of_the_step(out):
    model, criterion = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    hook = smd.Hook(out, save_all=True, save_config=EVERY)
    hook.register_module(model)
    expected = []
    for _ in range(3):
        x, y = data()
        before = {f"Net_{name}": p.detach().clone() for name, p in model.named_parameters()}
        outputs = model(x)
        loss = criterion(outputs, y)
        optimizer.zero_grad()
        loss.backward()
        gradients = {f"gradient/Net_{name}": p.grad.clone() for name, p in model.named_parameters()}
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
        io = {"Net_input_0": x, "Net_output_0": outputs, "fc_output_0": outputs}
        io |= {"CrossEntropyLoss_input_1": y, "CrossEntropyLoss_output_0": loss}
        expected.append(before | gradients | io)
    trial = trial_of(hook)
    assert trial.steps() == [0, 1, 2]
    for step, tensors in enumerate(expected):
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(value(trial, name, step), tensor.detach().numpy(), err_msg=name)


def test_stored_reductions_are_those_of_the_raw_values(out, tmp_path):
    model = small()
    hook = smd.Hook(
        out,
        include_collections=["weights", "gradients"],
        reduction_config=smd.ReductionConfig(["min", "median", "std"], ["mean"], ["l2"], save_raw_tensor=True),
    )
    hook.register_module(model)
    one_step(model, torch.optim.SGD(model.parameters(), lr=0.1))
    trial = trial_of(hook)
    for name in ("Sequential_0.weight", "gradient/Sequential_2.weight"):
        raw = value(trial, name).astype(np.float64)
        stored = trial.tensor(name).reduction_values(0)
        want = {("min", False): raw.min(), ("median", False): np.median(raw), ("std", False): raw.std()}
        want |= {("mean", True): np.abs(raw).mean(), ("l2", False): np.sqrt((raw**2).sum())}
        assert stored.keys() == want.keys()
        for op, number in want.items():
            assert stored[op] == pytest.approx(number, rel=1e-12)


def test_an_input_is_saved_before_an_in_place_module_overwrites_it(out):
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(inplace=True))
    hook = smd.Hook(out, include_regex=["1_input", "0_output"])
    hook.register_module(model)
    x = torch.randn(6, 5)
    with torch.no_grad():
        plain = nn.functional.linear(x, model[0].weight, model[0].bias)
    model(x).sum().backward()
    trial = trial_of(hook)
    assert (plain < 0).any()
    np.testing.assert_array_equal(value(trial, "1_input_0"), plain.numpy())
    np.testing.assert_array_equal(value(trial, "0_output_0"), plain.numpy())


LOSSES = {
    "functional": (lambda out, y: F.cross_entropy(out, y), "Loss_output_0"),
    "hand-written": (lambda out, y: (out.logsumexp(1) - out[torch.arange(6), y]).mean(), "Loss_output_0"),
    "module": (lambda out, y: nn.CrossEntropyLoss()(out, y), "CrossEntropyLoss_output_0"),
    "rescaled module": (lambda out, y: nn.CrossEntropyLoss()(out, y) / 4, "CrossEntropyLoss_output_0"),
    "averaged module": (
        lambda out, y: nn.CrossEntropyLoss(reduction="none")(out, y).mean(),
        "CrossEntropyLoss_output_0",
    ),
}


@pytest.mark.parametrize("style", LOSSES)
def test_every_style_of_loss_is_found_once(out, style):
    compute, name = LOSSES[style]
    model = small()
    hook = smd.Hook(out, save_config=EVERY)
    hook.register_module(model)
    want = []
    for _ in range(2):
        out_, y = model(torch.randn(6, 5)), torch.randint(0, 3, (6,))
        loss = compute(out_, y)
        want.append(F.cross_entropy(out_, y).item())
        loss.backward()
    trial = trial_of(hook)
    assert trial.tensor_names(collection="losses") == [name]
    assert [value(trial, name, step).mean() for step in (0, 1)] == pytest.approx(want, rel=1e-6)


def test_two_losses_and_their_sum(out):
    model = small()
    hook = smd.Hook(out)
    hook.register_module(model)
    output = model(torch.randn(6, 5))
    (nn.MSELoss()(output, torch.zeros(6, 3)) + nn.L1Loss()(output, torch.ones(6, 3))).backward()
    assert trial_of(hook).tensor_names() == ["L1Loss_output_0", "Loss_output_0", "MSELoss_output_0"]


def test_a_registered_loss_that_is_no_torch_loss(out):
    class Dice(nn.Module):
        def forward(self, a, b):
            return (a * b).sum()

    model, dice = small(), Dice()
    hook = smd.Hook(out, include_regex="Dice_output")
    hook.register_module(model)
    hook.register_loss(dice)
    dice(model(torch.randn(6, 5)), torch.ones(6, 3)).backward()
    assert trial_of(hook).tensor_names() == ["Dice_output_0"]
    with pytest.raises(AssertionError):
        hook.register_loss(F.cross_entropy)


def test_gradients_are_unscaled_under_a_grad_scaler_and_so_is_the_loss(out):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    hook = smd.Hook(out, include_collections=["gradients"])
    hook.register_module(model)
    x, y = torch.randn(6, 5), torch.randint(0, 3, (6,))
    reference = copy.deepcopy(model)
    loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    F.cross_entropy(reference(x), y).backward()
    trial = trial_of(hook)
    assert value(trial, "Loss_output_0") == pytest.approx(loss.item())
    for name, parameter in reference.named_parameters():
        np.testing.assert_allclose(value(trial, f"gradient/Sequential_{name}"), parameter.grad, rtol=1e-5)


def test_without_an_optimizer_every_pass_ends_a_step(out):
    model = small()
    hook = smd.Hook(out, include_collections=["gradients"], save_config=EVERY)
    hook.register_module(model)
    sums = []
    for _ in range(3):
        model(torch.randn(6, 5)).square().mean().backward()
        sums.append(model[0].weight.grad.clone())
    trial = trial_of(hook)
    for step, want in enumerate(sums):
        np.testing.assert_array_equal(value(trial, "gradient/Sequential_0.weight", step), want)


def test_gradients_that_only_the_optimizer_sees(out):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = smd.Hook(out, include_collections=["gradients"])
    hook.register_module(model)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(model(torch.randn(6, 5)).sum(), parameters)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    optimizer.step()
    np.testing.assert_array_equal(value(trial_of(hook), "gradient/Sequential_0.weight"), gradients[0])


def test_frozen_parameters_have_weights_but_no_gradient(out):
    model = small()
    model[0].weight.requires_grad_(False)
    hook = smd.Hook(out, include_collections=["weights", "gradients"])
    hook.register_module(model)
    model(torch.randn(6, 5)).sum().backward()
    names = trial_of(hook).tensor_names()
    assert "Sequential_0.weight" in names
    assert "gradient/Sequential_0.weight" not in names
    assert "gradient/Sequential_0.bias" in names


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "float8_e4m3fn", "complex64", "int16", "bool"])
def test_tensors_of_every_dtype(out, dtype):
    hook = smd.Hook(out, include_regex="x_output", save_config=EVERY)
    model = small()
    hook.register_module(model)
    model(torch.randn(6, 5))
    tensor = (torch.randn(3, 4) * 3).to(getattr(torch, dtype))
    hook.record_tensor_value("x", tensor)
    trial = trial_of(hook)
    want = tensor.float() if dtype in ("bfloat16", "float8_e4m3fn") else tensor
    np.testing.assert_array_equal(value(trial, "x_output_0"), want.numpy())
    assert trial.tensor("x_output_0").record(0).dtype == dtype


def test_views_of_every_layout(out):
    hook = smd.Hook(out, include_regex="x_output", save_config=EVERY)
    model = small()
    hook.register_module(model)
    model(torch.randn(6, 5))
    base = torch.randn(2, 3, 4, 5)
    tensors = [base.permute(3, 1, 0, 2), base.to(memory_format=torch.channels_last), base[:, ::2, 1:]]
    tensors += [torch.randn(4, 4).to_sparse(), torch.randn(3, dtype=torch.complex64).conj(), torch.tensor(3.5)]
    for tensor in tensors:
        hook.record_tensor_value("x", tensor)
    trial = trial_of(hook)
    for i, tensor in enumerate(tensors):
        want = tensor.to_dense() if tensor.is_sparse else tensor.resolve_conj()
        np.testing.assert_array_equal(value(trial, f"x_output_{i}"), want.numpy())


def test_a_saved_tensor_can_still_get_another_size_and_a_freed_one_is_a_line(out, capsys):
    hook = smd.Hook(out, include_regex="x_output", save_config=EVERY)
    model = small()
    hook.register_module(model)
    model(torch.randn(6, 5))
    grown, freed = torch.arange(3.0), torch.randn(4)[2:]
    freed.untyped_storage().resize_(0)
    for tensor in (grown, freed):
        hook.record_tensor_value("x", tensor)
    torch.arange(5.0, out=grown.resize_(5))
    hook.record_tensor_value("x", grown)
    trial = trial_of(hook)
    np.testing.assert_array_equal(value(trial, "x_output_0"), [0, 1, 2])
    np.testing.assert_array_equal(value(trial, "x_output_2"), [0, 1, 2, 3, 4])
    assert trial.tensor_names(regex="x_output_1") == []
    assert "x_output_1" in capsys.readouterr().err


def test_structured_inputs_and_outputs_are_numbered_on(out):
    class Pair(nn.Module):
        def forward(self, x, *, scale):
            return {"a": x * scale, "more": [x, (x + 1, None, "text")]}

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.pair = Pair()

        def forward(self, x):
            return self.pair(x, scale=torch.tensor(2.0))

    model = Outer()
    hook = smd.Hook(out, include_regex="^pair_")
    hook.register_module(model)
    model(torch.ones(2))
    trial = trial_of(hook)
    outputs = [value(trial, f"pair_output_{i}").tolist() for i in range(3)]
    assert outputs == [[2, 2], [1, 1], [2, 2]]
    assert value(trial, "pair_input_1") == 2
    assert len(trial.tensor_names()) == 5


def test_module_tensors_of_a_collection(out):
    model = Net()
    hook = smd.Hook(out, include_collections=["acts"])
    hook.get_collection("acts").add_module_tensors(model.fc, inputs=True)
    hook.get_collection("acts").add_module_tensors(model.relu)
    hook.register_module(model)
    model(data()[0])
    names = trial_of(hook).tensor_names()
    assert names == ["fc_input_0", "fc_output_0", "relu_output_0", "relu_output_1"]


def test_activation_checkpoints_are_not_saved_twice(out):
    from torch.utils.checkpoint import checkpoint

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(5, 5), nn.Linear(5, 3)

        def forward(self, x):
            return self.b(checkpoint(self.a, x, use_reentrant=False))

    model = Net()
    hook = smd.Hook(out, save_all=True)
    hook.register_module(model)
    model(torch.randn(2, 5)).sum().backward()
    names = trial_of(hook).tensor_names(regex="^[ab]_output")
    assert names == ["a_output_0", "b_output_0"]


def test_a_tensor_that_gives_no_values_is_a_line_and_the_others_are_saved(out, capsys):
    class Sealed(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
            raise RuntimeError("no operation at all")

    hook = smd.Hook(out, include_regex="x_output")
    model = small()
    hook.register_module(model)
    model(torch.randn(6, 5))
    hook.record_tensor_value("x", torch.Tensor._make_subclass(Sealed, torch.ones(2)))
    hook.record_tensor_value("x", torch.ones(2, device="meta"))
    hook.record_tensor_value("x", torch.ones(3))
    assert trial_of(hook).tensor_names() == ["x_output_2"]
    assert capsys.readouterr().err.count("cannot be saved") == 2


def test_in_a_training_job_the_second_run_is_inside_of_the_folder_that_is_copied(out, monkeypatch):
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    folders = []
    for _ in range(2):
        hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1))
        model = nn.Linear(3, 2)
        hook.register_module(model)
        nn.MSELoss()(model(torch.ones(4, 3)), torch.ones(4, 2)).backward()
        session.finish_run(hook)
        folders.append(hook.out_dir)
    assert folders == [str(out), f"{out}/run-2"]
    assert all(smd.create_trial(folder, timeout=0).steps(show_incomplete_steps=True) == [0] for folder in folders)


@pytest.mark.usefixtures("impatient")
def test_a_regex_that_python_does_not_come_back_from_does_not_hang_the_training(out):
    collections = [smd.Collection("all_of", "^([a-zA-Z_.0-9/]+)+!$"), smd.Collection("fc", r"^(\w+[./]?)*weight$")]
    hook = smd.Hook(out, save_config=EVERY, include_collections=["all_of", "fc"])
    for collection in collections:
        hook.get_collections()[collection.name] = collection
    model = small()
    hook.register_hook(model)
    one_step(model, torch.optim.SGD(model.parameters(), lr=0.1))
    trial = trial_of(hook)
    names = [name for name in trial.tensor_names() if name.endswith("weight") and "/" not in name]
    assert set(names) <= set(trial.tensor_names(collection="fc"))
    assert len(names) == 2
    assert trial.tensor_names(regex="^([a-zA-Z_.0-9/]+)+!$") == []
