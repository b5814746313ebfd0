"""What Gluon's models are given, in the collection ``usage``, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mxnet")

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn, rnn

import smd_agent.mxnet as smd


def saved(out, net, *inputs, hybrid=False):
    """The numbers of the inputs in the second of two steps, by input and name."""
    net.initialize(mx.init.Xavier())
    if hybrid:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.0})
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["usage"])
    hook.register_block(net)
    for _ in range(2):
        with autograd.record():
            loss = net(*inputs).sum()
        loss.backward()
        trainer.step(1)
    hook.close()
    trial = smd.create_trial(hook.out_dir)
    found = {}
    for name in trial.tensor_names(regex="^usage/input/"):
        _, _, of, fact = name.split("/")
        found.setdefault(of, {})[fact] = float(trial.tensor(name).value(1))
    return found


def sequential(*blocks, hybrid=True, **arguments):
    net = (nn.HybridSequential if hybrid else nn.Sequential)(prefix="net_", **arguments)
    net.add(*blocks)
    return net


@pytest.mark.parametrize("hybrid", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_of_a_table(out, dtype, hybrid):
    x = np.random.default_rng(0).normal(size=(20, 6)) * [1, 100, 1, 0.01, 0, 3]
    x[0, 0] = np.inf if dtype == "float64" else 1
    net = sequential(nn.Dense(3))
    net.cast(dtype)
    found = saved(out, net, nd.array(x, dtype=dtype), hybrid=hybrid)["net_0"]
    assert (found["largest_column"], found["smallest_column"]) == (0 if dtype == "float64" else 1, 3)
    assert found["as_it_is"] == 1
    assert found["smallest_scale"] == pytest.approx(np.sqrt((x[:, 3] ** 2).mean()), rel=1e-3)
    assert found["not_finite"] == pytest.approx(1 / 120 if dtype == "float64" else 0)
    if dtype == "float32":
        expected = {"min": x.min(), "max": x.max(), "mean": x.mean(), "std": x.std()}
        assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("rows", [30, 50])
def test_numbers_of_images_of_any_number(out, rows):
    x = np.random.default_rng(0).random((rows, 1, 28, 28), np.float32)
    found = saved(out, sequential(nn.Conv2D(2, 3)), nd.array(x))["net_0"]
    length = rows * 784 // 64
    part = x.reshape(-1)[: 64 * length].reshape(64, length)[:, :256]
    expected = {"min": part.min(), "max": part.max(), "mean": part.mean(), "std": part.std(), "not_finite": 0}
    expected |= {"as_it_is": 1}
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-5)


def test_numbers_of_integers(out):
    x = np.arange(24).reshape(4, 6)
    found = saved(out, Scaled(lambda x: x.astype("float32"), prefix="net_"), nd.array(x, dtype="int64"))["net_0"]
    assert (found["min"], found["max"], found["largest_column"], found["integers"]) == (0, 23, 5, 1)
    assert (found["mean"], found["std"]) == pytest.approx((x.mean(), x.std()))
    # The layer is given what the block has made of them.
    assert found["as_it_is"] == 0


class Scaled(gluon.HybridBlock):
    """A block that changes its input before a dense layer."""

    def __init__(self, change, **arguments):
        super().__init__(**arguments)
        self.change = change
        with self.name_scope():
            self.layer = nn.Dense(3)

    def hybrid_forward(self, F, x, other=None):
        return self.layer(self.change(x))


@pytest.mark.parametrize("hybrid", [True, False])
@pytest.mark.parametrize(
    "make, shape, known",
    [
        (lambda: sequential(nn.Flatten(), nn.Dense(3)), (4, 2, 3), 1),
        (lambda: sequential(sequential(nn.Conv2D(2, 1)), nn.Dense(3)), (4, 1, 5, 5), 1),
        (lambda: sequential(nn.BatchNorm(), nn.Dense(3)), (4, 6), 0),
        (lambda: Scaled(lambda x: x / 255, prefix="net_"), (4, 6), 0),
        (lambda: Scaled(lambda x: x, prefix="net_"), (4, 6), 1),
        (lambda: nn.Dense(3, prefix="net_"), (4, 6), 1),
        (lambda: sequential(nn.LayerNorm()), (4, 6), None),
    ],
    ids=["flattened", "nested", "normalised", "scaled", "as it is", "dense", "no weights"],
)
def test_whether_a_block_gets_the_input(out, make, shape, known, hybrid):
    assert saved(out, make(), nd.random.normal(shape=shape), hybrid=hybrid)["net_0"].get("as_it_is") == known


def test_a_block_that_is_hybridized_inside_of_one_that_is_not(out):
    inner = sequential(nn.Flatten(), nn.Dense(3))
    inner.hybridize()
    net = nn.Sequential(prefix="net_")
    net.add(inner)
    assert saved(out, net, nd.random.normal(shape=(4, 6)))["net_0"]["as_it_is"] == 1


def test_recurrent_layers_and_several_inputs(out):
    found = saved(f"{out}/rows", rnn.LSTM(3, prefix="net_", input_size=6), nd.random.normal(shape=(5, 4, 6)))
    assert found["net_0"]["as_it_is"] == 1
    found = saved(f"{out}/two", Scaled(lambda x: x, prefix="net_"), nd.ones((4, 6)), nd.ones((4, 2)))
    assert {name: numbers["as_it_is"] for name, numbers in found.items()} == {"net_0": 1, "net_1": 0}


def test_numbers_of_words_that_an_embedding_looks_up(out):
    embedding = sequential(nn.Embedding(9, 3))
    found = saved(f"{out}/words", embedding, nd.array([[1, 2]], dtype="int32"))["net_0"]
    expected = {"min": 1, "max": 2, "mean": 1.5, "std": 0.5, "not_finite": 0, "integers": 1}
    assert {name: found.get(name) for name in (*expected, "as_it_is")} == {**expected, "as_it_is": None}


def test_sparse_arrays_are_left_alone(out):
    assert saved(out, Sparse(prefix="net_"), nd.ones((4, 6)).tostype("csr")) == {}


class Sparse(nn.Block):
    """A block that is given a sparse array."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.weight = self.params.get("weight", shape=(6, 3))

    def forward(self, x):
        return nd.dot(x, self.weight.data())


def test_the_model_that_raises_an_error_is_forgotten(out):
    net = Scaled(lambda x: x, prefix="net_")
    net.initialize()
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["usage"])
    hook.register_block(net)
    with autograd.record(), pytest.raises(TypeError):
        net(nd.ones((4, 6)), 1, 2, 3, 4)
    hook.close()
