"""Parameters and gradients of Trainers: those of no block, those that are kept or discarded; and the rules."""

from __future__ import annotations

import gc
import threading

import pytest

pytest.importorskip("mxnet")

import mxnet as mx
import numpy as np
from harness.gluon_facts import findings_of, make_net, rows, usage, usage_of
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

import smd_agent.mxnet as smd
from smd_agent.mxnet import backward_calls
from smd_agent.mxnet.reached_parameters import has_unused_gradient
from smd_agent.rules import GradientDiscarded, GradientNotCleared, OptimizerNotOfModel

SGD = "optimizer/SGD"


def numbers(found, fact):
    return [*found[f"{SGD}/{fact}"].values()]


def backward(net, seed, factor=1):
    with autograd.record():
        loss = (net(rows(seed)) ** 2).mean() * factor
    loss.backward()


def adding(net):
    for parameter in net.collect_params().values():
        parameter.grad_req = "add"
    return net


def cleared(net):
    for parameter in net.collect_params().values():
        parameter.zero_grad()


def norm(net):
    return np.sqrt(sum(float((one.grad() ** 2).sum().asscalar()) for one in net.collect_params().values()))


def trained(out, run, count=4, net=None, **arguments):
    """A hook that has saved a training, of which ``run`` makes each step."""
    net = net or make_net(**arguments)
    hook = usage(out, net)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for step in range(count):
        run(net, trainer, step)
    return hook


def with_head_replaced(out, after):
    """A training of which a layer is replaced, before the Trainer is made or after that."""
    net = nn.HybridSequential(prefix="net_")
    net.add(nn.Dense(5, in_units=6), nn.Dense(3, in_units=5))
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd") if after else None
    head = nn.Dense(3, in_units=5)
    head.initialize()
    net._children["1"] = head
    trainer = trainer or gluon.Trainer(net.collect_params(), "sgd")
    hook = usage(out, net)
    for step in range(4):
        backward(net, step)
        trainer.step(1, ignore_stale_grad=True)
    return hook


def test_parameters_of_a_layer_that_was_replaced(out):
    found = usage_of(with_head_replaced(out, after=True))
    assert numbers(found, "unowned") == [2] * 4
    assert numbers(found, "with_gradient") == [0.5] * 4
    found = usage_of(with_head_replaced(f"{out}2", after=False))
    assert (numbers(found, "unowned"), numbers(found, "with_gradient")) == ([0] * 4, [1] * 4)


def test_free_parameters_and_those_of_other_blocks(out):
    net, elsewhere = make_net(), nn.Dense(2, in_units=2)
    elsewhere.initialize()
    free = [gluon.Parameter(f"free_{number}", shape=(2,)) for number in range(4)]
    for parameter in free:
        parameter.initialize(mx.init.One())
    trained = [*net.collect_params().values(), *elsewhere.collect_params().values(), *free[:3]]
    trainer = gluon.Trainer(trained, "sgd", {"learning_rate": 0.01})
    hook = usage(out, net)
    for step in range(6):
        with autograd.record():
            # The first one has a gradient, and the second one once.
            factor = free[0].data().sum() * (free[1].data().sum() if step == 2 else 1)
            loss = (net(rows(step)) ** 2).mean() * factor
        loss.backward()
        if step == 4:
            free[2].set_data(nd.ones(2) * 2)
        trainer.step(1, ignore_stale_grad=True)
    found = usage_of(hook)
    assert numbers(found, "unowned") == [2, 2, 1, 1, 0, 0]
    assert numbers(found, "with_gradient") == pytest.approx([5 / 9, 5 / 9, 6 / 9, 5 / 9, 5 / 9, 5 / 9])


def test_a_trainer_of_another_net_than_the_one_that_is_trained(out):
    for number, own in enumerate((False, True)):
        net, other = make_net(), make_net("other_")
        trainer = gluon.Trainer((net if own else other).collect_params(), "sgd")
        hook = usage(f"{out}{number}", net)
        for step in range(4):
            backward(net, step)
            trainer.step(1, ignore_stale_grad=True)
        assert bool(findings_of(hook, OptimizerNotOfModel())) is not own


def test_the_rule_finds_a_layer_that_was_replaced_and_nothing_in_its_clean_twin(out):
    (finding,) = findings_of(with_head_replaced(out, after=True), OptimizerNotOfModel())
    assert finding.tensor == f"usage/{SGD}/unowned"
    gc.collect()
    assert findings_of(with_head_replaced(f"{out}2", after=False), OptimizerNotOfModel()) == []


# Gradients that are kept.


def uncleared(net, trainer, step):
    backward(net, step)
    trainer.step(1)


def accumulated(net, trainer, step):
    backward(net, step)
    backward(net, step + 10)
    trainer.step(1)
    cleared(net)


def cleared_before(net, trainer, step):
    cleared(net)
    uncleared(net, trainer, step)


def cleared_between(net, trainer, step):
    with autograd.record():
        loss = (net(rows(step)) ** 2).mean()
    cleared(net)
    loss.backward()
    trainer.step(1)


def test_gradients_that_are_added_up_and_never_cleared(out):
    lengths = []

    def run(net, trainer, step):
        lengths.append(norm(net))
        uncleared(net, trainer, step)

    found = usage_of(trained(out, run, net=adding(make_net())))
    assert numbers(found, "kept_gradient") == pytest.approx(lengths, rel=1e-5)
    assert lengths[0] == 0 < lengths[1]


@pytest.mark.parametrize("run", [accumulated, cleared_before, cleared_between])
def test_gradients_that_are_cleared_around_the_update(out, run):
    hook = trained(out, run, net=adding(make_net()))
    assert numbers(usage_of(hook), "kept_gradient") == [0] * 4
    assert findings_of(hook, GradientNotCleared()) == []


def test_gradients_that_are_written_anew(out):
    hook = trained(out, uncleared)
    assert numbers(usage_of(hook), "kept_gradient") == [0] * 4
    assert findings_of(hook, GradientNotCleared()) == []


def test_the_rule_finds_gradients_that_are_not_cleared(out):
    (finding,) = findings_of(trained(out, uncleared, net=adding(make_net())), GradientNotCleared())
    assert finding.tensor == f"usage/{SGD}/kept_gradient"


# Gradients that are discarded.


def of_several(net, trainer, step):
    for part in range(3):
        backward(net, 10 * step + part)
    trainer.step(1)


def clipped(net, trainer, step):
    for part in range(3):
        backward(net, 10 * step + part)
    for parameter in net.collect_params().values():
        parameter.grad()[:] *= 0.1
    trainer.step(1)


def put_together(net, trainer, step):
    sums = dict.fromkeys(net.collect_params(), 0)
    for part in range(3):
        backward(net, 10 * step + part)
        for name, parameter in net.collect_params().items():
            sums[name] = sums[name] + parameter.grad().copy()
    for name, parameter in net.collect_params().items():
        parameter.grad()[:] = sums[name]
    trainer.step(1)


def perturbed(net, trainer, step):
    for part in range(2):
        backward(net, 10 * step + part)
        if not part:
            for parameter in net.collect_params().values():
                parameter.set_data(parameter.data() + 0.1 * parameter.grad())
    trainer.step(1)


def at_two_places(net, trainer, step):
    backward(net, step)
    for part in range(1):
        backward(net, 10 * step + part)
    trainer.step(1)


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("run", [of_several, clipped])
def test_passes_that_are_overwritten_by_the_next_one(out, run, hybridize):
    hook = trained(out, run, hybridize=hybridize)
    found = usage_of(hook)
    assert (numbers(found, "passes"), numbers(found, "discarded_passes")) == ([3] * 4, [2] * 4)
    (finding,) = findings_of(hook, GradientDiscarded())
    assert finding.tensor == f"usage/{SGD}/discarded_passes"


@pytest.mark.parametrize("run", [uncleared, put_together, perturbed, at_two_places])
def test_passes_that_are_meant(out, run):
    hook = trained(out, run)
    assert numbers(usage_of(hook), "discarded_passes") == [0] * 4
    assert findings_of(hook, GradientDiscarded()) == []


def test_gradients_that_are_added_up_are_not_discarded(out):
    hook = trained(out, of_several, net=adding(make_net()))
    found = usage_of(hook)
    assert (numbers(found, "passes"), numbers(found, "discarded_passes")) == ([3] * 4, [0] * 4)


def test_a_pass_that_leaves_gradients_of_the_one_before(out):
    """Two heads have a pass each: the trunk's gradient is overwritten, and the first head's is used."""
    net = nn.HybridSequential(prefix="net_")
    net.add(nn.Dense(5, in_units=6), nn.Dense(3, in_units=5), nn.Dense(3, in_units=5))
    net.initialize()

    class Heads(nn.Block):
        def __init__(self):
            super().__init__(prefix="heads_")
            self.net = net

        def forward(self, x):
            hidden = self.net[0](x)
            return [self.net[1](hidden), self.net[2](hidden)]

    def run(heads, trainer, step):
        with autograd.record():
            results = heads(rows(step))
        for result in results:
            result.backward(retain_graph=True)
        trainer.step(1)

    assert numbers(usage_of(trained(out, run, net=Heads())), "discarded_passes") == [0] * 4


def test_passes_for_several_contexts(out):
    contexts = [mx.cpu(0), mx.cpu(1)]

    def run(net, trainer, step):
        with autograd.record():
            losses = [(net(rows(step, ctx=one)) ** 2).mean() for one in contexts]
        for loss in losses:
            loss.backward()
        trainer.step(1)

    found = usage_of(trained(out, run, ctx=contexts))
    assert (numbers(found, "kept_gradient"), numbers(found, "unowned")) == ([0] * 4, [0] * 4)
    assert f"{SGD}/discarded_passes" not in found


def test_gradients_that_another_thread_is_about_to_use_stay_so(out):
    nets = [nn.Dense(2, in_units=3, prefix=f"net{number}_") for number in range(2)]
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), include_collections=["gradients"])
    for net in nets:
        net.initialize()
        hook.register_block(net)
    trainers = [gluon.Trainer(net.collect_params(), "sgd") for net in nets]
    has_passed, may_update = threading.Event(), threading.Event()

    def differentiate(net):
        with autograd.record():
            loss = net(nd.ones((4, 3))).sum()
        loss.backward()

    def train_beside():
        differentiate(nets[1])
        has_passed.set()
        may_update.wait(20)
        # A gradient that no pass has made since the last update is warned of, which is an error here.
        trainers[1].step(4)

    def meanwhile(heads, run):
        run()
        if has_passed.is_set():
            may_update.set()
            beside.join()

    leave = backward_calls.watch(meanwhile)
    beside = threading.Thread(target=train_beside)
    try:
        beside.start()
        has_passed.wait(20)
        differentiate(nets[0])
    finally:
        leave()
    assert not any(map(has_unused_gradient, nets[1].collect_params().values()))
    trainers[0].step(4)
    hook.close()
    assert "gradient/net0_weight" in smd.create_trial(out).tensor_names()
