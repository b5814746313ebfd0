"""AllZero, on gradients that never come, and as smdebug documents it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from harness.rule_runs import found, met, written
from torch import nn

from smd_agent.rules import AllZero

A, B, C = (f"gradient/{name}.weight" for name in "abc")


def gradient(zero, shape=(8, 6)):
    return {"zero_share": zero, "shape": shape}


def course(shares, others=(0.0, 0.0), **more):
    return [{A: gradient(share, **more), B: gradient(others[0]), C: gradient(others[1])} for share in shares]


def unused(factor):
    """Train a net with a branch that the loss has this much of."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.head = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 1)

        def forward(self, x):
            return self.head(self.a(x) + factor * self.b(x))

    def training(capture):
        model = Net()
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(14):
            optimizer.zero_grad()
            (model(torch.randn(16, 6)) - 1).pow(2).mean().backward()
            optimizer.step()

    return training


def test_a_branch_that_the_loss_has_nothing_of(trained):
    (one,) = trained(unused(0.0)).findings(AllZero())
    assert (one.tensor, one.first_step, one.last_step) == ("gradient/Net_b.weight", 9, 13)
    assert one.evidence == {"zero_percent": 100.0, "others": 2}
    assert trained(unused(1e-3)).findings(AllZero()) == []


@pytest.mark.parametrize("share, finds", [(1.0, True), (0.99, False)])
def test_at_the_threshold(tmp_path, share, finds):
    assert found(written(tmp_path / "run", course([share] * 12)), AllZero()) == ({A: (9, 11)} if finds else {})


@pytest.mark.parametrize("shares", [[1.0] * 9 + [0.0] * 3, [1.0] * 12 + [0.5], [1.0] * 9 + [0.0] + [1.0] * 9])
def test_it_takes_many_steps_in_a_row_and_lasts(tmp_path, shares):
    assert found(written(tmp_path / "run", course(shares)), AllZero()) == {}


def test_a_loss_that_has_come_to_0(tmp_path):
    assert found(written(tmp_path / "a", course([1.0] * 12, others=(1.0, 0.0))), AllZero()) == {}
    assert A in found(written(tmp_path / "b", course([1.0] * 12, others=(0.0, 0.0))), AllZero())


@pytest.mark.parametrize("of_bias, finds", [(0.5, {A, B, C}), (1.0, set())])
def test_all_matrices_beside_a_bias(tmp_path, of_bias, finds):
    """As of a net whose weights are all 0, or whose last hidden layer is dead: a bias is all that learns."""
    steps = [step | {"gradient/c.bias": gradient(of_bias, (6,))} for step in course([1.0] * 12, others=(1.0, 1.0))]
    assert {*found(written(tmp_path / "run", steps), AllZero())} == finds


@pytest.mark.parametrize("loss, finds", [(0.7, {A, B, C}), (0.0, set()), (np.nan, set())])
def test_all_gradients_beside_a_loss(tmp_path, loss, finds):
    """As of a net whose output is a dead ReLU: there is something to learn, and nothing comes back."""
    steps = [step | {"loss": np.float32(loss)} for step in course([1.0] * 12, others=(1.0, 1.0))]
    assert {*found(written(tmp_path / "a", steps), AllZero())} == finds
    # Of two parts that are trained in turns one may rest.
    steps = [step | {"loss": np.float32(loss)} for step in course([1.0] * 12, others=(1.0, 0.0))]
    assert found(written(tmp_path / "b", steps), AllZero()) == {}


def test_a_part_whose_loss_is_0(tmp_path):
    """As of a margin that is kept everywhere, beside a loss that is not."""
    zero = {"margin_loss": np.float32(0), "loss": np.float32(0.3)}
    assert found(written(tmp_path / "a", [step | zero for step in course([1.0] * 20)]), AllZero()) == {}
    # A step with such a loss tells nothing; others do.
    steps = course([1.0] * 20)
    steps[15] |= zero
    assert found(written(tmp_path / "b", steps), AllZero()) == {A: (9, 19)}


def first_step_of_a_cell(reads):
    """Train an RNN cell of which only the first step is taken, from a state of zeros or from one that it is given."""

    def training(capture):
        cell, head = nn.RNNCell(6, 8), nn.Linear(8, 1)
        model = nn.ModuleList([cell, head])
        model.forward = lambda x, state: head(cell(x, state))
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(14):
            optimizer.zero_grad()
            (model(torch.randn(16, 6), reads * torch.randn(16, 8)) - 1).pow(2).mean().backward()
            optimizer.step()

    return training


@pytest.mark.parametrize("reads", [0.0, 1.0])
def test_what_is_multiplied_by_zeros(trained, reads):
    """Its bias tells that the loss comes back to the layer: it is given nothing but zeros."""
    assert trained(first_step_of_a_cell(reads)).findings(AllZero()) == []


def test_vectors_are_left_out(tmp_path):
    assert found(written(tmp_path / "run", course([1.0] * 12, shape=(8,))), AllZero()) == {}


def test_as_it_is_documented(tmp_path):
    values = [{"x": np.zeros(4), "y": np.array([0.0, 0, 0, 1])}, {"x": np.ones(4), "loss": np.float32(0)}]
    trial = written(tmp_path / "run", values)
    for arguments, expected in (
        ({"tensor_regex": ".*"}, [0, 1]),
        ({"tensor_regex": "^x$"}, [0]),
        ({"tensor_regex": "^y$"}, []),
        ({"tensor_regex": "^y$", "threshold": "75"}, [0]),
        ({"tensor_regex": "^y$", "threshold": "76"}, []),
        ({"collection_names": "losses"}, [1]),
        ({"collection_names": "losses", "tensor_regex": "^x$"}, [0, 1]),
    ):
        assert met(trial, AllZero(base_trial=trial, **arguments)) == expected, arguments


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.findings(AllZero()))} == {}
