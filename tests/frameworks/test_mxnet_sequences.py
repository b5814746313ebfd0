"""Recurrent layers of Gluon and targets of its losses: the axis that is taken for the batch, and the rule about it."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mxnet")

import mxnet as mx
from harness.gluon_facts import findings_of, of_first, train, usage, usage_of
from mxnet import nd
from mxnet.gluon import loss as losses
from mxnet.gluon import nn, rnn

import smd_agent.mxnet as smd
from smd_agent.rules import RecurrentOverBatch

SIZE, TIME = 12, 7
LABELS = nd.array(np.arange(SIZE) % 4)


class Classifier(nn.HybridBlock):
    """A recurrent layer and a head, for sequences that come as (batch, time, feature)."""

    def __init__(self, layer, transposed=False):
        super().__init__(prefix="net_")
        with self.name_scope():
            self.layer, self.head = layer, nn.Dense(4)
        self.transposed = transposed
        self.initialize(mx.init.Xavier())

    def hybrid_forward(self, F, x):
        if self.transposed:
            return self.head(F.transpose(self.layer(F.transpose(x, axes=(1, 0, 2))), axes=(1, 0, 2)))
        return self.head(self.layer(x))


def hooked(out, net, target=LABELS, criterion=None, shape=(SIZE, TIME, 6), count=1):
    hook = usage(out, net)
    criterion = criterion or losses.SoftmaxCrossEntropyLoss()
    inputs = [nd.array(np.random.RandomState(step).rand(*shape)) for step in range(count)]
    train(net, lambda net, step: criterion(net(inputs[step]), target), count)
    return hook


def layers_of(found):
    return {name.split("/")[1]: of_first(found, name.rpartition("/")[0]) for name in found if name.startswith("layer/")}


@pytest.mark.parametrize("kind", [rnn.RNN, rnn.LSTM, rnn.GRU])
def test_axes_of_layers_and_targets(out, kind):
    net = Classifier(kind(5, prefix="layer_"))
    found = usage_of(hooked(out, net))
    assert layers_of(found) == {net.layer.name: {"axis_0": SIZE, "axis_1": TIME, "batch": SIZE}}
    assert of_first(found, "target/SoftmaxCrossEntropyLoss_0") == {"axis_0": SIZE, "axis_1": 1, "elements": SIZE}


@pytest.mark.parametrize(
    "criterion, target",
    [
        (losses.L1Loss(), nd.ones((SIZE, 4))),
        (losses.SigmoidBCELoss(), nd.ones((SIZE, 4))),
        (losses.HingeLoss(), nd.ones((SIZE, 4))),
    ],
)
def test_targets_of_other_losses(out, criterion, target):
    found = usage_of(hooked(out, Classifier(rnn.GRU(5)), target, criterion))
    name = f"target/{type(criterion).__name__}_0"
    assert of_first(found, name) == {"axis_0": SIZE, "axis_1": 4, "elements": 4 * SIZE}


def test_layers_with_the_batch_first_transposed_and_inside_of_a_hybridized_block(out):
    assert layers_of(usage_of(hooked(f"{out}1", Classifier(rnn.GRU(5, layout="NTC"))))) == {}
    (axes,) = layers_of(usage_of(hooked(f"{out}2", Classifier(rnn.GRU(5), transposed=True)))).values()
    assert axes == {"axis_0": TIME, "axis_1": SIZE, "batch": SIZE}
    net = Classifier(rnn.GRU(5, input_size=6))
    net.hybridize()
    assert layers_of(usage_of(hooked(f"{out}3", net))) == {}


def test_a_layer_that_is_the_model_and_nothing_in_evaluation(out):
    net = rnn.LSTM(4, input_size=6, prefix="net_")
    net.initialize()
    hook = hooked(out, net, nd.ones((SIZE, TIME, 4)), losses.L2Loss())
    hook.set_mode(smd.modes.EVAL)
    losses.L2Loss()(net(nd.ones((3, 2, 6))), nd.ones((3, 2, 4)))
    found = usage_of(hook)
    assert layers_of(found) == {"net": {"axis_0": SIZE, "axis_1": TIME, "batch": SIZE}}
    assert {name: [*found[name]] for name in found if name.startswith(("layer/", "target/"))} == {
        **{f"layer/net/{fact}": [0] for fact in ("axis_0", "axis_1", "batch")},
        **{f"target/L2Loss_0/{fact}": [0] for fact in ("axis_0", "axis_1", "elements")},
    }


@pytest.mark.parametrize(
    "layer, transposed, finds",
    [(rnn.LSTM(5), False, True), (rnn.LSTM(5, layout="NTC"), False, False), (rnn.LSTM(5), True, False)],
)
def test_the_rule_finds_a_layer_over_the_batch_and_nothing_in_its_clean_twins(out, layer, transposed, finds):
    hook = hooked(out, Classifier(layer, transposed), count=4)
    assert bool(findings_of(hook, RecurrentOverBatch())) is finds


def test_a_program_that_has_the_time_first_is_right(out):
    net = rnn.LSTM(4, input_size=6, prefix="net_")
    net.initialize()
    hook = usage(out, net)
    criterion = losses.SoftmaxCrossEntropyLoss()
    train(net, lambda net, step: criterion(net(nd.ones((TIME, SIZE, 6)))[-1], LABELS), 4)
    assert findings_of(hook, RecurrentOverBatch()) == []
