"""Activations before Gluon's losses: what has returned a loss's input, which targets that reaches, and the rules."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mxnet")

import mxnet as mx
from harness.gluon_facts import findings_of, of_first, rows, train, usage, usage_of
from mxnet import nd
from mxnet.gluon import loss as losses
from mxnet.gluon import nn

import smd_agent.mxnet as smd
from smd_agent.rules import DoubleActivation, SoftmaxOverOne, TargetOutOfReach

LABELS = np.array([0, 2, 2, 1, 0, 0, 2, 1])
CLASSES, YES = nd.array(LABELS), nd.array(np.eye(3)[LABELS])
SOFTMAX, SIGMOID = "loss/SoftmaxCrossEntropyLoss_0", "loss/SigmoidBinaryCrossEntropyLoss_0"
WAYS = ("plain", "hybridized", "parts hybridized", "loss hybridized")


def unchanged(F, y):
    return y


def to_shares(F, y):
    return F.softmax(y)


class Ending(nn.HybridBlock):
    """A net of two layers, and what comes behind them."""

    def __init__(self, end, units=3, activation=None):
        super().__init__(prefix="net_")
        with self.name_scope():
            self.first = nn.Dense(5, in_units=6, activation="relu")
            self.second = nn.Dense(units, in_units=5, activation=activation)
        self.end = end
        self.initialize(mx.init.Xavier())

    def hybrid_forward(self, F, x):
        return self.end(F, self.second(self.first(x)))


def facts_of(out, end, criterion, target, way="plain", loss=None, count=1, **arguments):
    net = Ending(end, **arguments)
    if way == "hybridized":
        net.hybridize()
    if way == "parts hybridized":
        net.second.hybridize()
    if way == "loss hybridized":
        criterion.hybridize()
    hook = usage(out, net)
    train(net, lambda net, step: criterion(net(rows(step)), target), count)
    return hook, of_first(usage_of(hook), loss or f"loss/{type(criterion).__name__}_0")


def activated(found):
    return {name: value for name, value in found.items() if name in ("activated", "softmax_over")}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "end, expected",
    [
        (unchanged, {"activated": 0}),
        (to_shares, {"activated": 1, "softmax_over": 3}),
        (lambda F, y: F.cast(F.softmax(y), "float64"), {"activated": 1, "softmax_over": 3}),
        (lambda F, y: F.reshape(F.softmax(F.reshape(y, (2, 4, 3))), (8, 3)), {"activated": 1}),
        (lambda F, y: F.softmax(y) * 2, {"activated": 0}),
        (lambda F, y: F.sigmoid(y), {"activated": 0}),
        (lambda F, y: F.log_softmax(y), {"activated": 0}),
    ],
)
def test_losses_of_classes_that_are_given_what_a_softmax_has_returned(out, way, end, expected):
    _, found = facts_of(out, end, losses.SoftmaxCrossEntropyLoss(), CLASSES, way)
    assert activated(found) == expected


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("activation, expected", [("sigmoid", 1), ("tanh", 0), (None, 0)])
def test_losses_of_yes_and_no_that_are_given_what_a_sigmoid_has_returned(out, way, activation, expected):
    criterion = losses.SigmoidBinaryCrossEntropyLoss()
    _, found = facts_of(out, unchanged, criterion, YES, way, activation=activation)
    assert activated(found) == {"activated": expected}


def test_losses_that_expect_what_has_been_through_it_are_not_asked(out):
    _, found = facts_of(out, lambda F, y: F.sigmoid(y), losses.SigmoidBCELoss(from_sigmoid=True), YES, loss=SIGMOID)
    assert activated(found) == {}
    logarithms = losses.SoftmaxCrossEntropyLoss(from_logits=True)
    _, found = facts_of(f"{out}2", lambda F, y: F.log_softmax(y), logarithms, CLASSES)
    assert activated(found) == {}


def test_arrays_of_a_program_behind_a_hybridized_net(out):
    """Between the net and the loss the program goes on; of two outputs the second one is an activation's."""
    net = Ending(lambda F, y: [y, F.softmax(y)])
    net.hybridize()
    hook = usage(out, net)
    criterion = losses.SoftmaxCrossEntropyLoss()

    def compute(net, step):
        scores, shares = net(rows(step))
        given = [scores, shares, shares.expand_dims(0).squeeze(0), scores.softmax()]
        return sum(criterion(one, CLASSES) for one in given)

    train(net, compute)
    found = usage_of(hook)
    told = [of_first(found, f"loss/SoftmaxCrossEntropyLoss_{number}")["activated"] for number in range(4)]
    assert told == [0, 1, 1, 1]


def test_what_does_not_show_is_not_told(out):
    class Own(mx.autograd.Function):
        def forward(self, x):
            return x * 1

        def backward(self, dy):
            return dy

    class Through(nn.Block):
        def __init__(self):
            super().__init__(prefix="net_")
            with self.name_scope():
                self.layer = nn.Dense(3, in_units=6)

        def forward(self, x):
            return Own()(self.layer(x))

    net, criterion = Through(), losses.SoftmaxCrossEntropyLoss()
    net.initialize()
    hook = usage(out, net)
    train(net, lambda net, step: criterion(net(rows(step)), CLASSES))
    hook.set_mode(smd.modes.EVAL)
    criterion(net(rows(1)), CLASSES)
    assert "input_min" in (found := of_first(usage_of(hook), SOFTMAX))
    assert activated(found) == {}


NUMBERS = nd.array(np.linspace(-1, 3, 24).reshape(8, 3))
FACTS = ("reach_min", "reach_max", "target_min", "target_max", "out_of_reach")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("criterion", [losses.L1Loss, losses.L2Loss, losses.HuberLoss])
@pytest.mark.parametrize(
    "end, ends",
    [
        (lambda F, y: F.sigmoid(y), (0, 1)),
        (lambda F, y: F.Activation(y, act_type="tanh"), (-1, 1)),
        (lambda F, y: F.clip(y, 0, 2), (0, 2)),
        (lambda F, y: F.slice_axis(F.relu(F.concat(y, y, dim=1)), axis=1, begin=1, end=4), (0, None)),
        (lambda F, y: F.Activation(y, act_type="softrelu"), (0, None)),
        (lambda F, y: F.log_softmax(y), (None, 0)),
        (unchanged, None),
    ],
)
def test_targets_that_an_activation_cannot_return(out, way, criterion, end, ends):
    _, found = facts_of(out, end, criterion(), NUMBERS, way)
    if ends is None:
        assert found == {}
        return
    values = NUMBERS.asnumpy()
    known = {name: end for name, end in zip(FACTS, ends, strict=False) if end is not None}
    low, high = known.get("reach_min", -np.inf), known.get("reach_max", np.inf)
    outside = ((values < low) | (values > high)).mean()
    assert found == {**known, "target_min": -1, "target_max": 3, "out_of_reach": pytest.approx(outside)}


def test_targets_that_do_not_all_count_and_those_given_first(out):
    net = Ending(lambda F, y: F.sigmoid(y))
    hook = usage(out, net)
    criterion = losses.L2Loss()

    def compute(net, step):
        y = net(rows(step))
        return criterion(y, NUMBERS, nd.ones((8, 1))) + criterion(NUMBERS, y) + criterion(y.softmax(), NUMBERS)

    train(net, compute)
    found = usage_of(hook)
    weighted, turned, last = (of_first(found, f"loss/L2Loss_{number}") for number in range(3))
    assert weighted == {}
    assert turned["out_of_reach"] > 0.5
    assert (last["softmax_over"], last["reach_max"]) == (3, 1)


TARGETS = nd.array(np.arange(8.0).reshape(8, 1))


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize(
    "rule, criterion, target, faulty, clean",
    [
        (DoubleActivation, losses.SigmoidBCELoss, YES, {"activation": "sigmoid"}, {}),
        (SoftmaxOverOne, losses.L2Loss, TARGETS, {"end": to_shares, "units": 1}, {"units": 1}),
        (TargetOutOfReach, losses.L2Loss, TARGETS, {"activation": "sigmoid", "units": 1}, {"units": 1}),
    ],
)
def test_the_rules_find_the_fault_and_nothing_in_its_clean_twin(out, way, rule, criterion, target, faulty, clean):
    given = {"target": target, "way": way, "count": 4}
    for number, arguments in enumerate((faulty, clean)):
        hook, _ = facts_of(f"{out}{number}", **{"end": unchanged, **arguments}, criterion=criterion(), **given)
        assert bool(findings_of(hook, rule())) is (number == 0)
