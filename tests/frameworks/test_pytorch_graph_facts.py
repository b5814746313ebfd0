"""Facts of the collection ``usage`` that are told from the graph of autograd, and what looking at it leaves alone."""

from __future__ import annotations

import gc
import weakref

import pytest

pytest.importorskip("torch")

import torch
from harness.nothing_compiled import nothing_compiled
from torch import nn

import smd_agent.pytorch as smd

EVERY = smd.SaveConfig(save_interval=1)


@pytest.fixture(autouse=True)
def others_have_not_compiled():
    with nothing_compiled():
        yield


def hooked(out, model, collections=("usage",)):
    hook = smd.Hook(out, save_config=EVERY, include_collections=[*collections])
    hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    return hook


def saved(hook):
    """The numbers of the last step by name."""
    hook.close()
    trial = smd.create_trial(hook.out_dir)
    found = {}
    for name in trial.tensor_names(collection="usage"):
        last = trial.tensor(name).steps()[-1]
        if last == trial.steps()[-1]:
            found[name.removeprefix("usage/")] = float(trial.tensor(name).value(last))
    return found


def squares(prediction, target):
    return ((prediction - target) ** 2).mean()


def test_each_loss_that_a_pass_starts_from_up_to_four(out):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    hook = hooked(out, model)
    for target in (torch.randn(8), torch.randn(8, 1), torch.randn(8), torch.randn(8), torch.randn(8)):
        squares(model(torch.randn(8, 3)), target).backward()
    optimizer.step()
    found = {name: value for name, value in saved(hook).items() if name.endswith("/input_repeated")}
    expected = {0: 8, 1: 1, 2: 8, 3: 8}
    assert found == {f"loss/own_loss_{number}/input_repeated": value for number, value in expected.items()}


def test_what_somebody_packs_is_not_unpacked(out):
    unpacked = []

    def unpack(tensor):
        unpacked.append(torch._C._current_graph_task_id())
        return tensor

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    hook = hooked(out, model)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        prediction = model(torch.randn(8, 3))
        loss = squares(prediction, torch.randn(8)) - (prediction.sigmoid().log() * torch.randn(8)).mean()
    loss.backward()
    optimizer.step()
    assert saved(hook)["loss/own_loss_0/input_repeated"] == 1
    # Each was asked for by the backward pass alone.
    assert unpacked
    assert -1 not in unpacked


def test_neither_graph_nor_gradients_live_on(out):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    hook = hooked(out, model)
    gc.collect()
    gc.disable()
    try:
        gone = []
        for _ in range(3):
            optimizer.zero_grad()
            prediction = model(torch.randn(8, 3))
            loss = squares(prediction, torch.randn(8))
            gone += [weakref.ref(prediction), weakref.ref(loss)]
            loss.backward(retain_graph=True)
            del prediction, loss
            gone.append(weakref.ref(model.weight.grad))
        optimizer.zero_grad()
        assert [reference() for reference in gone] == [None] * len(gone)
    finally:
        gc.enable()
    hook.close()


def test_passes_and_those_that_were_discarded(out):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    hook = hooked(out, model)
    for clears in (True, False):
        for _ in range(3):
            if clears:
                optimizer.zero_grad()
            squares(model(torch.randn(8, 3)), torch.randn(8, 1)).backward()
        optimizer.step()
        optimizer.zero_grad()
    hook.close()
    trial = smd.create_trial(hook.out_dir)
    for name, expected in (("passes", [3, 3]), ("discarded_passes", [2, 0])):
        tensor = trial.tensor(f"usage/optimizer/SGD/{name}")
        assert [float(tensor.value(step)) for step in tensor.steps()] == expected


def trained(model, optimizer):
    for _ in range(4):
        for _ in range(2):
            optimizer.zero_grad()
            squares(model(torch.randn(8, 3)), torch.randn(8)).backward()
        optimizer.step()
    return [parameter.detach().clone() for parameter in model.parameters()], torch.get_rng_state()


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.more = [nn.Linear(3, 3), nn.Linear(3, 1)]

    def forward(self, x):
        return self.more[1](self.more[0](self.first(x)))


def test_the_training_is_the_same(out):
    results = []
    for captured in (False, True):
        torch.manual_seed(0)
        model = Listed()
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        hook = hooked(out, model, ("usage", "parameters")) if captured else None
        results.append(trained(model, optimizer))
    hook.close()
    (plain, state), (seen, state_seen) = results
    assert all(map(torch.equal, plain, seen))
    assert torch.equal(state, state_seen)
