"""Updates, digests of inputs, and what is known of parameters of Gluon, against NumPy."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("mxnet")

import mxnet as mx
from harness.gluon_facts import arrays, backward, hooked, make_net, rows, trial_of, values
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

import smd_agent.mxnet as smd
from smd_agent.framework.replaced_functions import replaced
from smd_agent.framework.training_facts import LOOKED_AT

TRAIN = smd.modes.TRAIN


def told(trial, name, step=0):
    return json.loads(str(trial.tensor(name).value(step, mode=TRAIN)[0]))


WAYS = {
    "sgd": ("sgd", {}, 1),
    "adam": ("adam", {"learning_rate": 1e-3}, 1),
    "float64": ("sgd", {"momentum": 0.9}, 1),
    "hybridized": ("adagrad", {}, 1),
    "two contexts": ("sgd", {"momentum": 0.9}, 2),
    "two contexts in the Trainer": ("sgd", {}, 2),
}


@pytest.mark.parametrize("way", WAYS)
def test_updates_are_what_the_trainer_has_changed(out, way):
    name, settings, count = WAYS[way]
    contexts = [mx.cpu(i) for i in range(count)]
    dtype = "float64" if way == "float64" else "float32"
    net = make_net(ctx=contexts, hybridize=way == "hybridized", dtype=dtype)
    on_store = False if way == "two contexts in the Trainer" else None
    trainer = gluon.Trainer(net.collect_params(), name, {"learning_rate": 0.1, **settings}, update_on_kvstore=on_store)
    hook, expected = hooked(out, net), []
    for step in range(3):
        before = arrays(net)
        for context in contexts:
            backward(net, rows(step, dtype, context))
        trainer.step(1)
        expected.append(
            {name: (np.linalg.norm(a - before[name]), np.linalg.norm(before[name])) for name, a in arrays(net).items()}
        )
    assert bool(trainer._update_on_kvstore) is (way == "two contexts")
    trial = trial_of(hook)
    for name in expected[0]:
        updates, ratios = values(trial, f"update/{name}"), values(trial, f"update_ratio/{name}")
        assert len(updates) == len(ratios) == 3
        for step, moved in enumerate(expected):
            update, length = moved[name]
            assert update > 0
            assert updates[step] == pytest.approx(update, rel=2e-5)
            assert ratios[step] == pytest.approx(update / length if length else 1, rel=2e-5)


def test_of_a_large_parameter_a_part_stands_for_all(out):
    net = nn.Dense(600, in_units=700, prefix="net_")
    net.initialize(mx.init.Normal(0.1))
    assert net.weight.data().size > 4 * LOOKED_AT
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 1e-3})
    hook = hooked(out, net)
    before = arrays(net)["net_weight"]
    backward(net, nd.array(np.random.RandomState(0).randn(8, 700)))
    trainer.step(1)
    update = np.linalg.norm(arrays(net)["net_weight"] - before)
    trial = trial_of(hook)
    assert values(trial, "update/net_weight") == pytest.approx([update], rel=0.02)
    assert values(trial, "update_ratio/net_weight") == pytest.approx([update / np.linalg.norm(before)], rel=0.02)


def test_sparse_gradients_move_dense_weights(out):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Embedding(10, 4, sparse_grad=True), nn.Dense(2, in_units=4))
    net.initialize(mx.init.Normal(0.1))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    hook, expected = hooked(out, net), []
    for _ in range(2):
        before = arrays(net)["net_embedding0_weight"]
        backward(net, nd.array([1, 3]))
        trainer.step(1)
        expected.append(np.linalg.norm(arrays(net)["net_embedding0_weight"] - before))
    assert expected[0] > 0
    assert values(trial_of(hook), "update/net_embedding0_weight") == pytest.approx(expected, rel=2e-5)


class Table(gluon.Block):
    """Looks up rows of a parameter that lives in its Trainer's store."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        with self.name_scope():
            self.table = self.params.get("table", shape=(10, 6), stype="row_sparse", grad_stype="row_sparse")
            self.dense = nn.Dense(3, in_units=6)

    def forward(self, ids):
        rows_of_it = self.table.row_sparse_data(ids)
        return self.dense(nd.Embedding(ids, rows_of_it, input_dim=10, output_dim=6, sparse_grad=True))


def test_a_sparse_parameter_is_told_of(out, capsys):
    net = Table(prefix="net_")
    net.initialize(mx.init.Normal(0.1))
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})
    hook = hooked(out, net)
    for _ in range(2):
        backward(net, nd.array([1, 3]))
        trainer.step(1)
    trial = trial_of(hook)
    lines = capsys.readouterr().err
    assert lines.count("update/net_table is not saved: net_table is a sparse parameter") == 1
    assert trial.tensor_names(collection="updates") == [
        f"{kind}/net_dense0_{own}" for kind in ("update", "update_ratio") for own in ("bias", "weight")
    ]
    assert told(trial, "parameters/net")["net_table"]["optimizer"] == "SGD/group_0"


def test_what_does_not_move_and_what_moves_from_nothing(out):
    net = nn.Dense(3, in_units=6, prefix="net_")
    net.initialize(mx.init.Zero())
    net.bias.lr_mult = 0.0
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    hook = hooked(out, net)
    with autograd.record():
        loss = net(rows(0)).sum()
    loss.backward()
    trainer.step(1)
    trial = trial_of(hook)
    assert values(trial, "update_ratio/net_weight") == [1]
    assert values(trial, "update/net_bias") == values(trial, "update_ratio/net_bias") == [0]


def digests(trial, name="net_0"):
    tensor = trial.tensor(f"input_digest/{name}")
    found = [tensor.value(step, mode=TRAIN) for step in tensor.steps(mode=TRAIN)]
    assert {(value.dtype, value.shape) for value in found} == {(np.dtype(np.int64), (1,))}
    return [int(value[0]) for value in found]


@pytest.mark.parametrize("hybridize", [False, True])
def test_batches_that_come_again_have_the_same_digest(out, hybridize):
    net = make_net(hybridize=hybridize)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    hook = hooked(out, net)
    batches = [np.random.RandomState(seed).rand(8, 6).astype(np.float32) for seed in range(3)]
    changed = batches[1].copy()
    changed[3, 2] = np.nextafter(changed[3, 2], np.float32(9))
    for batch in [*batches, batches[0][::-1], changed, batches[2], batches[0][:4]]:
        backward(net, nd.array(batch))
        trainer.step(1)
    found = digests(trial_of(hook))
    assert found[5] == found[2]
    assert len({*found}) == 6


class Echo(gluon.Block):
    """Does not look at what it is called with."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        with self.name_scope():
            self.dense = nn.Dense(3, in_units=6)

    def forward(self, *_):
        return self.dense(nd.ones((2, 6)))


KINDS_OF_ARRAY = {
    **{name: lambda x, name=name: nd.array(x, dtype=name) for name in ("uint8", "int64", "float16", "float64")},
    "csr": lambda x: nd.array(x).tostype("csr"),
    "row_sparse": lambda x: nd.array(x).tostype("row_sparse"),
    "in a list": lambda x: [nd.array(x), nd.array(x)],
}


@pytest.mark.parametrize("kind", KINDS_OF_ARRAY)
def test_inputs_of_every_kind_have_a_digest(out, kind):
    net = Echo(prefix="net_")
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    hook = hooked(out, net)
    other = np.ones((300, 300))
    other[0, 1] = 0
    for x in (np.ones((300, 300)), np.ones((300, 300)), other):
        backward(net, KINDS_OF_ARRAY[kind](x))
        trainer.step(1)
    first, second, third = digests(trial_of(hook))
    assert first == second != third


def test_each_context_has_a_digest_of_its_own(out):
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = make_net(ctx=contexts)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    hook = hooked(out, net)
    for seeds in ((0, 1), (1, 0)):
        for seed, context in zip(seeds, contexts, strict=True):
            backward(net, rows(seed, ctx=context))
        trainer.step(1)
    trial = trial_of(hook)
    assert digests(trial) == digests(trial, "net_1")[::-1]
    assert len({*digests(trial)}) == 2


class Parts(gluon.Block):
    def __init__(self, **arguments):
        super().__init__(**arguments)
        with self.name_scope():
            for name in ("backbone", "head", "unused", "late"):
                units = 3 if name in ("head", "unused") else 6
                setattr(self, name, nn.Dense(units, in_units=6, use_bias=False, prefix=f"{name}_"))

    def forward(self, x):
        return self.head(self.late(self.backbone(x)))


def test_each_parameter_is_trained_frozen_forgotten_or_not_reached(out):
    net = Parts(prefix="net_")
    net.initialize(mx.init.Xavier())
    net.backbone.weight.grad_req = "null"
    parameters = [net.head.weight, net.unused.weight]
    trainer = gluon.Trainer(parameters, "sgd", {"learning_rate": 0.1})
    hook = hooked(out, net)
    for step in range(4):
        if step == 3:
            net.late.weight.grad_req = "null"
        backward(net, rows(step))
        trainer.step(1, ignore_stale_grad=True)
    trial = trial_of(hook)
    # It is told again only when something has changed.
    assert trial.tensor("parameters/net").steps(mode=TRAIN) == [0, 3]
    expected = {
        "net_backbone_weight": {"requires_grad": False, "optimizer": None, "gradient": False},
        "net_head_weight": {"requires_grad": True, "optimizer": "SGD/group_0", "gradient": True},
        "net_unused_weight": {"requires_grad": True, "optimizer": "SGD/group_0", "gradient": False},
        "net_late_weight": {"requires_grad": True, "optimizer": None, "gradient": True},
    }
    assert told(trial, "parameters/net") == expected
    expected["net_late_weight"] = {"requires_grad": False, "optimizer": None, "gradient": False}
    assert told(trial, "parameters/net", 3) == expected
    # What nobody updates has no update; what is stale has not moved.
    moved = {name: values(trial, name)[0] for name in trial.tensor_names(regex="^update/")}
    assert moved.keys() == {"update/net_head_weight", "update/net_unused_weight"}
    assert moved["update/net_unused_weight"] == 0 < moved["update/net_head_weight"]


def test_two_trainers_in_turn_have_the_parameters_of_their_own_nets(out):
    net, other = make_net(), make_net("other_")
    trainers = [gluon.Trainer(each.collect_params(), "sgd", {"learning_rate": 0.1}) for each in (net, other)]
    hook = hooked(out, net, other)
    for step in range(3):
        for each, trainer in zip((net, other), trainers, strict=True):
            backward(each, rows(step))
            trainer.step(1)
    trial = trial_of(hook)
    for prefix, title in (("net", "SGD"), ("other", "SGD_2")):
        facts = told(trial, f"parameters/{prefix}")
        assert {fact["optimizer"] for fact in facts.values()} == {f"{title}/group_0"}
        # Each when its own Trainer updates.
        assert all(fact["gradient"] for fact in facts.values())
        assert len(values(trial, f"update/{prefix}_dense0_weight")) == 3
        assert values(trial, f"optimizer/{title}/lr") == [0.1] * 3


def test_none_of_it_is_a_weight_and_nothing_is_saved_unasked(out):
    net = make_net()
    hook = hooked(out, net, include_collections=["weights", "biases"])
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    backward(net, rows(0))
    trainer.step(1)
    names = [f"net_dense{layer}_{own}" for layer in (0, 1) for own in ("bias", "weight")]
    assert trial_of(hook).tensor_names() == ["loss0_output_0", *names]


def test_with_all_none_of_it_is_a_weight(out):
    net = make_net(hybridize=True)
    hook = hooked(out, net, include_collections=None, save_all=True)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for step in range(2):
        backward(net, rows(step))
        trainer.step(1)
    trial = trial_of(hook)
    assert "update/net_dense0_weight" in trial.tensor_names()
    for kind, own in (("weights", "weight"), ("biases", "bias")):
        assert trial.tensor_names(collection=kind) == [f"net_dense{layer}_{own}" for layer in (0, 1)]


@pytest.mark.parametrize("hybridize", [False, True])
def test_a_training_is_the_same_and_steps_between_are_left_alone(out, hybridize):
    def run(hook_of):
        mx.random.seed(3)
        net = nn.HybridSequential(prefix="net_")
        with net.name_scope():
            net.add(nn.Conv2D(8, 3, in_channels=1, activation="relu"), nn.BatchNorm(in_channels=8), nn.Dropout(0.3))
            net.add(nn.Flatten(), nn.Dense(3))
        net.initialize(mx.init.Xavier())
        if hybridize:
            net.hybridize()
        schedule = mx.lr_scheduler.FactorScheduler(2, 0.7)
        trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01, "lr_scheduler": schedule})
        hook, seen = hook_of(net), []
        for step in range(7):
            backward(net, nd.array(np.random.RandomState(step).rand(4, 1, 12, 12)))
            trainer.step(4)
            seen.append({entry.path for entry in replaced() if entry.name in ("_allreduce_grads", "_get_lrs")})
        drawn = nd.random.uniform(shape=3).asnumpy()
        weights = {name: parameter.data().asnumpy() for name, parameter in net.collect_params().items()}
        return hook, seen, drawn, weights

    _, _, drawn, plain = run(lambda _: None)
    hook, seen, drawn_by_all, weights = run(lambda net: hooked(out, net, save_config=smd.SaveConfig(save_interval=3)))
    # A patch of the saved step is there until the next step begins, one of the update until that returns.
    assert [bool(found) for found in seen] == [step % 3 == 0 for step in range(7)]
    assert not any("_get_lrs" in path for found in seen for path in found)
    np.testing.assert_array_equal(drawn_by_all, drawn)
    for name, array in plain.items():
        np.testing.assert_array_equal(weights[name], array)
    trial = trial_of(hook)
    assert trial.tensor("update/net_conv0_weight").steps(mode=TRAIN) == [0, 3, 6]
    # Running statistics are the Trainer's too, which does not update them.
    assert trial.tensor_names(regex="running") == []
    rates = [0.01 * 0.7 ** (step // 2) for step in (0, 3, 6)]
    assert values(trial, "optimizer/Adam/lr") == pytest.approx(rates)
