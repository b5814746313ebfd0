"""Blocks of Gluon in plain lists and dicts, which nothing trains, and those that are hidden on purpose."""

from __future__ import annotations

import pytest

pytest.importorskip("mxnet")

from harness.gluon_facts import findings_of, hooked, rows
from mxnet import autograd, gluon
from mxnet.gluon import nn

from smd_agent.mxnet.lost_loads import loads
from smd_agent.rules import ParameterNotOptimized
from smd_agent.rules.finding import Severity

pytestmark = pytest.mark.filterwarnings("ignore:.*is an unregistered container with Blocks")


def dense():
    block = nn.Dense(6, in_units=6, activation="tanh")
    block.initialize()
    return block


class Deep(gluon.Block):
    def __init__(self, container, count=2):
        super().__init__(prefix="net_")
        with self.name_scope():
            self.first, self.last = dense(), nn.Dense(1, in_units=6)
            self.hidden = container([dense() for _ in range(count)])
        self.last.initialize()
        self.use = lambda block, x: block(x)

    def blocks(self):
        hidden = self.hidden.values() if type(self.hidden) is dict else self.hidden
        return [part for one in hidden for part in (one if type(one) is list else [one])]

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks():
            x = self.use(block, x)
        return self.last(x)


def trained(out, net, steps=4, also=(), by_hand=False):
    hook = hooked(out, net, include_collections=["parameters"])
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    others = [gluon.Trainer(block.collect_params(), "sgd", {"learning_rate": 0.01}) for block in also]
    for step in range(steps):
        with autograd.record():
            loss = (net(rows(step)) - 1).square()
        loss.backward()
        trainer.step(8)
        for other in others:
            other.step(8)
        for block in net.blocks() if by_hand else ():
            for parameter in block.collect_params().values():
                parameter.set_data(parameter.data() - 0.1 * parameter.grad())
    return hook


CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "dict": lambda blocks: dict(enumerate(blocks)),
    "list of lists": lambda blocks: [blocks],
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_blocks_that_are_not_registered(out, name):
    net = Deep(CONTAINERS[name])
    found = findings_of(trained(out, net), ParameterNotOptimized())
    left = {parameter.name for block in net.blocks() for parameter in block.collect_params().values()}
    assert {one.tensor for one in found} == left
    assert len(left) == 4
    for one in found:
        assert (one.severity, one.first_step) == (Severity.PROBLEM, 1)
        assert one.evidence == {"not_optimized": 4, "optimized": 4}
        assert "register_child" in one.advice


def registered(tmp_path):
    net = Deep(list)
    for block in net.hidden:
        net.register_child(block)
    return net


def in_a_sequence(tmp_path):
    def sequence(blocks):
        found = nn.Sequential()
        found.add(*blocks)
        return found

    return Deep(sequence)


def alone(tmp_path):
    return Deep(list, 1)


def frozen(tmp_path):
    net = Deep(list)
    for block in net.hidden:
        block.collect_params().setattr("grad_req", "null")
    return net


def loaded(tmp_path):
    # As the agent does when MXNet is imported; here the hook comes later.
    loads.install()
    net = Deep(list)
    for block in net.hidden:
        block.save_parameters(str(tmp_path / "block"))
        block.load_parameters(str(tmp_path / "block"))
    return net


def paused(tmp_path):
    def without_gradients(block, x):
        with autograd.pause():
            return block(x)

    net = Deep(list)
    # Their part of it is added, so that the rest has a gradient.
    net.use = lambda block, x: x + without_gradients(block, x)
    return net


@pytest.mark.parametrize("made", [registered, in_a_sequence, alone, frozen, loaded, paused])
def test_what_is_no_fault(out, tmp_path, made):
    assert findings_of(trained(out, made(tmp_path)), ParameterNotOptimized()) == []


def test_blocks_with_trainers_of_their_own(out):
    net = Deep(list)
    assert findings_of(trained(out, net, also=net.hidden), ParameterNotOptimized()) == []


def test_blocks_that_are_updated_by_hand(out):
    assert findings_of(trained(out, Deep(list), by_hand=True), ParameterNotOptimized()) == []
