"""The collection ``usage`` of Gluon: what losses are given and in which mode models are called, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mxnet")

import mxnet as mx
from harness.gluon_facts import findings_of, hooked, make_net, of_first, rows, train, trial_of, usage, usage_of
from mxnet import autograd, nd
from mxnet.gluon import loss as losses
from mxnet.gluon import nn, rnn

import smd_agent.mxnet as smd
from smd_agent.rules import DropoutTooLarge

SOFTMAX, SIGMOID = "loss/SoftmaxCrossEntropyLoss", "loss/SigmoidBinaryCrossEntropyLoss"


@pytest.mark.parametrize("way", ["plain", "hybridized", "hybridized loss", "float16 labels", "one-hot", "channels"])
def test_logits_and_labels(out, way):
    net = make_net(hybridize=way == "hybridized")
    hook, seen = usage(out, net), []
    labels = np.array([0, 2, 2, 1, 0, 0, 2, 1])
    axis = 1 if way == "channels" else -1
    criterion = losses.SoftmaxCrossEntropyLoss(axis=axis, sparse_label=way != "one-hot")
    if way == "hybridized loss":
        criterion.hybridize()

    def compute(net, step):
        y = net(rows(step))
        target = nd.array(np.eye(3)[labels] if way == "one-hot" else labels)
        if way == "float16 labels":
            target = target.astype("float16")
        if way == "channels":
            y, target = y.reshape((2, 4, 3)).transpose((0, 2, 1)), target.reshape((2, 4))
        result = criterion(y, target)
        seen.extend((y.asnumpy(), result.asnumpy()))
        return result

    train(net, compute)
    y, loss = seen
    found = of_first(usage_of(hook), f"{SOFTMAX}_0")
    expected = {
        "expects_logits": 1,
        "expects_logarithms": 0,
        "activated": 0,
        "input_min": y.min(),
        "input_max": y.max(),
        "row_sum_error": pytest.approx(abs(y.sum(axis) - 1).max(), rel=1e-6),
        "classes": 3,
        "labels": 8,
        "label_min": 0,
        "label_max": 2,
        "ignored": 0,
        "top_label": 0,
        "top_share": 3 / 8,
        "loss": pytest.approx(loss.mean(), rel=1e-5),
        **({"top_at_end": 0} if way == "channels" else {}),
    }
    assert {name: found[name] for name in expected} == expected


def test_labels_out_of_range_and_those_that_weights_take_out(out):
    net = make_net()
    hook = usage(out, net)
    criterion = losses.SoftmaxCrossEntropyLoss()
    labels = nd.array([-1, 1, 2, 3, 9, 1, 1, 1])
    weights = nd.array([[0], [1], [0.5], [1], [0], [1], [1], [1]])

    def compute(net, step):
        y = net(rows(step))
        alone = criterion(y, labels)
        of_all = criterion(y, labels, weights * 0)
        return criterion(y, labels, weights) + alone + of_all

    train(net, compute)
    found = usage_of(hook)
    alone, of_all, weighted = (of_first(found, f"{SOFTMAX}_{number}") for number in range(3))
    assert [alone[name] for name in ("labels", "label_min", "label_max", "ignored")] == [8, -1, 9, 0]
    assert [weighted[name] for name in ("labels", "label_min", "label_max", "ignored")] == [6, 1, 3, 0.25]
    assert (of_all["labels"], of_all["ignored"]) == (0, 1)
    assert of_all["label_min"] > of_all["label_max"]


def test_what_is_given_as_logarithms_and_probabilities(out):
    net = make_net()
    hook, seen = usage(out, net), []
    labels, yes = nd.array([0, 2, 2, 1, 0, 0, 2, 1]), nd.array(np.eye(3)[[0, 2, 2, 1, 0, 0, 2, 1]])

    def compute(net, step):
        y = net(rows(step))
        seen.append(y.asnumpy())
        return (
            losses.SoftmaxCrossEntropyLoss(from_logits=True)(y.log_softmax(), labels)
            + losses.SoftmaxCrossEntropyLoss(from_logits=True)(y, labels)
            + losses.KLDivLoss()(y.log_softmax(), yes)
            + losses.SigmoidBinaryCrossEntropyLoss(from_sigmoid=True)(y.sigmoid(), yes)
            + losses.SigmoidBinaryCrossEntropyLoss()(y, yes)
        )

    train(net, compute)
    found, (y,) = usage_of(hook), seen
    logarithms, scores = of_first(found, f"{SOFTMAX}_0"), of_first(found, f"{SOFTMAX}_1")
    assert (logarithms["expects_logits"], logarithms["expects_logarithms"]) == (0, 1)
    assert logarithms["log_sum_error"] < 1e-5
    assert scores["log_sum_error"] == pytest.approx(abs(np.log(np.exp(y).sum(1))).max(), rel=1e-5)
    assert of_first(found, "loss/KLDivLoss_0")["expects_logarithms"] == 1
    assert "labels" not in of_first(found, "loss/KLDivLoss_0")
    activated, plain = of_first(found, f"{SIGMOID}_0"), of_first(found, f"{SIGMOID}_1")
    assert activated == {
        "expects_logits": 0,
        "input_min": pytest.approx(1 / (1 + np.exp(-y.min())), rel=1e-5),
        "input_max": pytest.approx(1 / (1 + np.exp(-y.max())), rel=1e-5),
        "loss": pytest.approx(plain["loss"], rel=1e-3),
    }
    assert plain.pop("loss") > 0
    assert plain == {"expects_logits": 1, "activated": 0, "input_min": y.min(), "input_max": y.max()}


def test_what_a_guess_would_cost(out):
    net = make_net()
    hook = usage(out, net)
    criterion, yes_or_no = losses.SoftmaxCrossEntropyLoss(), losses.SigmoidBinaryCrossEntropyLoss()
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 2])

    def compute(net, step):
        y = net(rows(step))
        plain = criterion(y, nd.array(labels))
        weighted = criterion(y, nd.array(labels), nd.ones((8, 1)))
        return plain + weighted + yes_or_no(y, nd.array(np.eye(3)[labels]))

    train(net, compute, 9)
    found = usage_of(hook)
    shares = np.bincount(labels) / 8
    entropy = -(shares * np.log(shares)).sum()
    of_classes = found[f"{SOFTMAX}_0/guess"]
    assert of_classes == pytest.approx({7: entropy, 8: entropy}, rel=1e-5)
    of_yes_and_no = found[f"{SIGMOID}_0/guess"]
    by_column = -(shares * np.log(shares) + (1 - shares) * np.log(1 - shares)).mean()
    assert of_yes_and_no == pytest.approx(dict.fromkeys(range(4, 9), by_column), rel=1e-5)
    assert not {f"{SOFTMAX}_1/loss", f"{SOFTMAX}_1/guess"} & {*found}


class Masked(losses.SoftmaxCELoss):
    """As the program's own: what comes third is a number of labels, not their weights."""

    def forward(self, pred, label, length):
        weights = nd.SequenceMask(nd.ones_like(label).expand_dims(-1), length, True, axis=1)
        return super().forward(pred, label, weights)


def test_losses_of_the_programs_own_and_many_calls(out):
    net = make_net()
    hook = usage(out, net)
    criterion, plain = Masked(), losses.SoftmaxCrossEntropyLoss()

    def compute(net, step):
        y = net(rows(step))
        own = criterion(y.reshape((2, 4, 3)), nd.array(np.full((2, 4), 7)), nd.array([2, 3]))
        return own + sum(plain(y[:2], nd.array([0, 1])) for _ in range(6))

    train(net, compute)
    assert {name.split("/")[1] for name in usage_of(hook) if name.startswith("loss/")} == {
        f"SoftmaxCrossEntropyLoss_{number}" for number in range(4)
    }


def test_large_inputs_are_looked_at_in_part(out):
    net = nn.Dense(70_000, in_units=2, prefix="net_")
    net.initialize(mx.init.Normal(0.1))
    hook = usage(out, net)
    train(net, lambda net, step: losses.SoftmaxCrossEntropyLoss()(net(nd.ones((20, 2))), nd.arange(20) + 5))
    found = of_first(usage_of(hook), f"{SOFTMAX}_0")
    assert (found["classes"], found["labels"], found["label_max"]) == (70_000, 20, 24)


def modes_of(found, name="model/net"):
    return {key.rpartition("/")[2]: [*values.values()] for key, values in found.items() if key.startswith(f"{name}/")}


@pytest.mark.parametrize("hybridize", [False, True])
def test_modes_of_layers(out, hybridize):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(
            nn.Dense(6, in_units=6), nn.BatchNorm(in_channels=6), nn.BatchNorm(in_channels=6, use_global_stats=True)
        )
        net.add(nn.Dropout(0.3), nn.Dropout(0.0), nn.Dense(3, in_units=6))
    net.initialize()
    if hybridize:
        net.hybridize()
    hook = usage(out, net)
    hook.recorder.follow_calls()
    train(net, lambda net, step: (net(rows(step)) ** 2).mean(), 2)
    net(rows(5))
    with autograd.train_mode():
        net(rows(6))
    found = usage_of(hook)
    dropped = [pytest.approx(0.3)] * 4
    assert modes_of(found) == {
        "training": [1, 1, 0, 1],
        "dropout": [1, 1, 0, 1],
        "dropped": dropped,
        "batch_norm": [0.5, 0.5, 0, 0.5],
    }
    trial = smd.create_trial(hook.out_dir)
    assert trial.tensor("usage/model/net/training").steps(mode=smd.modes.EVAL) == [0, 1]


def test_dropout_between_the_layers_of_a_recurrent_one(out):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(rnn.LSTM(4, num_layers=2, dropout=0.2, input_size=6), rnn.GRU(4, dropout=0.2, input_size=4))
    net.initialize()
    hook = usage(out, net)
    train(net, lambda net, step: (net(rows(step).expand_dims(1)) ** 2).mean())
    assert modes_of(usage_of(hook)) == {"training": [1], "dropout": [1], "dropped": [pytest.approx(0.2)]}


def test_dropout_of_a_share_to_keep_is_found(out):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(6, in_units=6), nn.Dropout(0.9), nn.Dense(3, in_units=6))
    net.initialize()
    hook = usage(out, net)
    train(net, lambda net, step: losses.SoftmaxCrossEntropyLoss()(net(rows(step)), nd.ones(8)), 3)
    assert "usage/model/net/dropped" in {finding.tensor for finding in findings_of(hook, DropoutTooLarge())}


def test_nothing_is_saved_unasked_and_nothing_of_it_is_a_weight(out):
    for asked in (["weights"], ["weights", "usage"]):
        net = make_net()
        hook = hooked(f"{out}{len(asked)}", net, include_collections=asked)
        train(net, lambda net, step: losses.SoftmaxCrossEntropyLoss()(net(rows(step)), nd.ones(8)), 2)
        trial = trial_of(hook)
        assert bool(trial.tensor_names(regex="^usage/")) is ("usage" in asked)
        assert all(name.startswith("net_") for name in trial.tensor_names(collection="weights"))


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_training_is_the_same_bit_for_bit(out, hybridize):
    def run(hook_of):
        mx.random.seed(3)
        net = nn.HybridSequential(prefix="net_")
        with net.name_scope():
            net.add(nn.Dense(8, in_units=6, activation="relu"), nn.BatchNorm(in_channels=8), nn.Dropout(0.3))
            net.add(nn.Dense(3, in_units=8))
        net.initialize(mx.init.Xavier())
        if hybridize:
            net.hybridize()
        hook = hook_of(net)
        train(net, lambda net, step: losses.SoftmaxCrossEntropyLoss()(net(rows(step)), nd.arange(8) % 5), 6)
        drawn = nd.random.uniform(shape=3).asnumpy()
        return hook, [drawn, *(parameter.data().asnumpy() for parameter in net.collect_params().values())]

    _, plain = run(lambda _: None)
    hook, ours = run(lambda net: usage(out, net, save_config=smd.SaveConfig(save_interval=3)))
    assert [*usage_of(hook)[f"{SOFTMAX}_0/label_max"]] == [0, 3]
    for one, other in zip(plain, ours, strict=True):
        np.testing.assert_array_equal(one, other)
