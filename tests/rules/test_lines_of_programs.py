"""Lines of the program that findings are about."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn
from torch.nn import functional

from smd_agent.core.modes import ModeKeys
from smd_agent.rules import GradientNotCleared, LearningRateZero, LossNotFinite, SoftmaxOverOne
from smd_agent.rules.lines_of_programs import in_words


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.head = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.head(torch.tanh(self.hidden(x)))


def training_of(loss_of, clears=True, rate=0.01):
    def training(capture):
        net = Model()
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), rate)
        for _ in range(8):
            if clears:
                optimizer.zero_grad()
            loss_of(net, torch.randn(6, 4)).backward()
            optimizer.step()  # of the test

    return training


def squares(net, x):
    return functional.mse_loss(net(x), torch.rand(len(x), 1))


def over_one(net, x):
    return functional.mse_loss(net(x).softmax(1), torch.rand(len(x), 1))


def nothing_left(net, x):
    return functional.mse_loss(net(x) / 0.0, torch.rand(len(x), 1))


def line_of(found):
    (line,) = {one.line for one in found}
    file, _, rest = line.partition(":")
    assert file == "test_lines_of_programs.py"
    return rest.partition(": ")[2]


@pytest.mark.parametrize("loss_of, rule", [(over_one, SoftmaxOverOne), (nothing_left, LossNotFinite)])
def test_where_the_loss_is_computed(trained, loss_of, rule):
    (found, *_) = trained(training_of(loss_of)).findings(rule())
    assert line_of([found]).startswith("return functional.mse_loss(")


@pytest.mark.parametrize("settings, rule", [({"clears": False}, GradientNotCleared), ({"rate": 0.0}, LearningRateZero)])
def test_where_the_optimizer_updates(trained, settings, rule):
    found = trained(training_of(squares, **settings)).findings(rule())
    assert line_of(found) == "optimizer.step()  # of the test"


def test_two_losses(trained):
    """Which of them has made the whole one what it is is not known."""

    def both(net, x):
        return nothing_left(net, x) + squares(net, x)

    found = trained(training_of(both)).findings(LossNotFinite())
    assert {one.line for one in found if "Loss" in one.tensor or "loss" in one.tensor} == {""}


def test_an_evaluation_has_lines_of_its_own_which_are_not_saved(trained):
    def training(capture):
        net = Model()
        hook = capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for step in range(8):
            hook.set_mode(ModeKeys.TRAIN)
            optimizer.zero_grad()
            squares(net, torch.randn(6, 4)).backward()
            optimizer.step()
            if step % 2:
                hook.set_mode(ModeKeys.EVAL)
                with torch.no_grad():
                    nothing_left(net, torch.randn(6, 4))

    (found,) = trained(training).findings(LossNotFinite())
    assert (found.mode, found.line) == (ModeKeys.EVAL, "")


@pytest.mark.parametrize("first, second", [(squares, over_one), (over_one, squares)])
def test_a_second_training_has_a_line_of_its_own(trained, first, second):
    def training(capture):
        net = Model()
        capture(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for step in range(12):
            optimizer.zero_grad()
            (first if step < 6 else second)(net, torch.randn(6, 4)).backward()
            optimizer.step()

    run = trained(training)
    assert "softmax(1)" in line_of(run.findings(SoftmaxOverOne()))
    assert run.trial().tensor("line/target/mse_loss_0").steps() == [0, 6]
    assert run.trial().tensor("line/optimizer/SGD").steps() == [0]


def test_it_is_saved_when_it_is_new(trained):
    trial = trained(training_of(squares)).trial()
    assert trial.tensor("line/target/mse_loss_0").steps() == [0]
    assert "line/target/mse_loss_0" in trial.tensor_names(collection="parameters")
    assert "line/target/mse_loss_0" not in trial.tensor_names(collection="weights")


def test_in_words():
    assert in_words(json.dumps(["/a/train.py", 41, "loss = f(x)"])) == "train.py:41: loss = f(x)"
    assert in_words(json.dumps(["train.py", 41, ""])) == "train.py:41"


@pytest.mark.parametrize("text", ["", "[]", "{}", "3", '["a", "b", "c"]', '[1, 2, "x"]'])
def test_what_is_no_line(text):
    assert in_words(text) == ""
