"""Means over a batch from which backward passes of Gluon start, and Trainers that divide by its size once more."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mxnet")

import mxnet as mx
from harness.gluon_facts import findings_of, hooked, make_net, of_first, rows, usage_of
from mxnet import autograd, gluon, nd
from mxnet.contrib import amp
from mxnet.gluon import loss as losses
from mxnet.gluon import nn

from smd_agent.rules import BatchDividedTwice
from smd_agent.rules.finding import Severity

BATCH = 8
STEPS = 4
ROWS = nd.array(np.eye(3)[np.arange(BATCH) % 3])
CLASSES = nd.array(np.arange(BATCH) % 3)


class OwnMean(gluon.HybridBlock):
    def hybrid_forward(self, F, y, target):
        return F.mean(F.square(y - target))


class OwnSum(gluon.HybridBlock):
    def hybrid_forward(self, F, y, target):
        return F.sum(F.square(y - target), axis=1).sum()


class WithLoss(gluon.HybridBlock):
    """A net that computes its loss, which is a mean."""

    def __init__(self, kind):
        super().__init__(prefix="net_")
        self.net, self.loss = make_net(), kind()

    def hybrid_forward(self, F, x, target):
        return self.loss(self.net(x), target).mean()


def trained(out, loss_of, divided=BATCH, net=None, optimizer="sgd", include=("usage", "optimizer"), **settings):
    net = net or make_net()
    hook = hooked(out, net, include_collections=[*include])
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.01, **settings})
    for step in range(STEPS):
        with autograd.record():
            loss = loss_of(net, rows(step))
        autograd.backward(loss)
        trainer.step(divided)
    return hook


def hybrid(block):
    block.hybridize()
    return block


class Blocks:
    """Losses that are made new for a training."""

    def __init__(self):
        self.l2, self.l1, self.ce = losses.L2Loss(), losses.L1Loss(), losses.SoftmaxCrossEntropyLoss()
        self.mean, self.sum = OwnMean(), OwnSum()
        self.hybrid_ce = hybrid(losses.SoftmaxCrossEntropyLoss())
        self.hybrid_mean, self.hybrid_sum = hybrid(OwnMean()), hybrid(OwnSum())


def two_means(y, use):
    return use.l2(y, ROWS).mean() + 0.1 * use.l1(y, ROWS).mean()


def mean_and_sum(y, use):
    loss = use.l2(y, ROWS)
    return loss.mean() + loss.sum()


def of_output(compute):
    """A loss of a net and its input, by one of what the net returns."""
    use = Blocks()
    return lambda net, x: compute(net(x), use)


MEANS = {
    "method": lambda y, use: use.l2(y, ROWS).mean(),
    "function": lambda y, use: nd.mean(use.ce(y, CLASSES)),
    "axis": lambda y, use: nd.mean(use.ce(y, CLASSES), axis=0),
    "hybridized loss": lambda y, use: use.hybrid_ce(y, CLASSES).mean(),
    "own loss": lambda y, use: use.mean(y, ROWS),
    "own loss, hybridized": lambda y, use: use.hybrid_mean(y, ROWS),
    "written out": lambda y, use: ((y - ROWS) ** 2).mean(),
    "classes written out": lambda y, use: -(y.log_softmax() * ROWS).sum(axis=1).mean(),
    "picked": lambda y, use: -nd.pick(y.log_softmax(), CLASSES).mean(),
    "mean of means": lambda y, use: ((y - ROWS) ** 2).mean(axis=-1).mean(),
    "in another shape": lambda y, use: ((y - ROWS) ** 2).reshape((-1,)).mean().reshape((1, 1)),
    "divided sum": lambda y, use: use.l2(y, ROWS).sum() / BATCH,
    "divided losses": lambda y, use: use.l2(y, ROWS) / BATCH,
    "weighted": lambda y, use: 0.5 * use.l2(y, ROWS).mean(),
    "added": two_means,
}


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", MEANS)
def test_means(out, name, hybridize):
    hook = trained(out, of_output(MEANS[name]), net=make_net(hybridize=hybridize))
    (found,) = findings_of(hook, BatchDividedTwice())
    assert (found.severity, found.tensor) == (Severity.WARNING, "usage/optimizer/SGD/averaged")
    assert found.evidence == {"averaged": BATCH, "averages": 1, "divided_by": pytest.approx(BATCH)}


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", MEANS)
def test_one_is_right(out, name, hybridize):
    hook = trained(out, of_output(MEANS[name]), divided=1, net=make_net(hybridize=hybridize))
    assert findings_of(hook, BatchDividedTwice()) == []


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("kind, target", [(losses.L2Loss, ROWS), (losses.SoftmaxCrossEntropyLoss, CLASSES)])
def test_a_net_that_computes_its_loss(out, kind, target, hybridize):
    net = WithLoss(kind)
    if hybridize:
        net.hybridize()
    hook = trained(out, lambda net, x: net(x, target), net=net)
    assert len(findings_of(hook, BatchDividedTwice())) == 1


# What is right, or not known, when the Trainer divides by the batch's size; with what is saved.
SUMS = {
    "losses": (lambda y, use: use.l2(y, ROWS), 0),
    "weighted losses": (lambda y, use: use.l2(y, ROWS) * 0.5, 0),
    "hybridized losses": (lambda y, use: use.hybrid_ce(y, CLASSES), 0),
    "sum": (lambda y, use: use.l2(y, ROWS).sum(), 0),
    "halved sum": (lambda y, use: use.l2(y, ROWS).sum() / 2, 0),
    "own sum": (lambda y, use: use.sum(y, ROWS), 0),
    "own sum, hybridized": (lambda y, use: use.hybrid_sum(y, ROWS), 0),
    "mean over classes of a sum": (lambda y, use: ((y - ROWS) ** 2).sum(axis=0).mean(), None),
    "sum of means over classes": (lambda y, use: ((y - ROWS) ** 2).mean(axis=1).sum(), 0),
    "losses over classes": (lambda y, use: ((y - ROWS) ** 2).mean(axis=1), 0),
    "mean of a sum": (lambda y, use: use.l2(y, ROWS).sum().mean(), None),
    "mean times the batch": (lambda y, use: use.l2(y, ROWS).mean() * BATCH, None),
    "mean beside a sum": (mean_and_sum, None),
    "transposed": (lambda y, use: ((y - ROWS) ** 2).transpose().sum(axis=1).mean(), None),
}


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", SUMS)
def test_sums(out, name, hybridize):
    loss_of, averaged = SUMS[name]
    hook = trained(out, of_output(loss_of), net=make_net(hybridize=hybridize))
    assert findings_of(hook, BatchDividedTwice()) == []
    found = of_first(usage_of(hook), "optimizer/SGD")
    expected = {} if averaged is None else {"averaged": averaged, "averages": 0}
    assert {name: found[name] for name in ("averaged", "averages") if name in found} == expected


def mean_loss(net, x):
    return ((net(x) - ROWS) ** 2).mean()


@pytest.mark.parametrize("divided, count", [(BATCH, 1), (1, 0), (2, 0), (2 * BATCH, 1), (5, 0)])
def test_means_that_are_accumulated(out, divided, count):
    net = make_net()
    hook = hooked(out, net, include_collections=["usage", "optimizer"])
    net.collect_params().setattr("grad_req", "add")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    for step in range(STEPS):
        for part in range(2):
            with autograd.record():
                loss = mean_loss(net, rows(2 * step + part))
            loss.backward()
        trainer.step(divided)
        net.collect_params().zero_grad()
    assert len(findings_of(hook, BatchDividedTwice())) == count


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("divided, count", [(2 * BATCH, 1), (2, 0), (1, 0)])
def test_several_contexts(out, divided, count, together):
    contexts = [mx.cpu(0), mx.cpu(1)]
    net = make_net(ctx=contexts)
    hook = hooked(out, net, include_collections=["usage", "optimizer"])
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    targets = [ROWS.as_in_context(one) for one in contexts]
    for step in range(STEPS):
        with autograd.record():
            parts = [
                ((net(rows(step, ctx=one)) - target) ** 2).mean() for one, target in zip(contexts, targets, strict=True)
            ]
        if together:
            autograd.backward(parts)
        else:
            for part in parts:
                part.backward()
        trainer.step(divided)
    assert len(findings_of(hook, BatchDividedTwice())) == count


def test_a_scale_that_the_program_takes_back(out):
    # Gradients are multiplied by the batch's size once more.
    hook = trained(out, mean_loss, rescale_grad=float(BATCH))
    assert findings_of(hook, BatchDividedTwice()) == []


@pytest.mark.parametrize("optimizer, count", [("nag", 1), ("adam", 0), ("rmsprop", 0)])
def test_other_optimizers(out, optimizer, count):
    assert len(findings_of(trained(out, mean_loss, optimizer=optimizer), BatchDividedTwice())) == count


def test_mixed_precision(out, monkeypatch):
    for name in ("_amp_initialized", "_amp_loss_scale_initialized"):
        monkeypatch.setattr(amp.amp, name, True)
    net = make_net()
    hook = hooked(out, net, include_collections=["usage", "optimizer"])
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    amp.init_trainer(trainer)
    for step in range(STEPS):
        with autograd.record():
            loss = mean_loss(net, rows(step))
            with amp.scale_loss(loss, trainer) as scaled:
                autograd.backward(scaled)
        trainer.step(BATCH)
    assert findings_of(hook, BatchDividedTwice()) == []


def test_the_two_of_a_gan(out):
    makes, judges = make_net("makes_"), nn.Dense(1, in_units=3, prefix="judges_")
    judges.initialize()
    hook = hooked(out, makes, judges, include_collections=["usage", "optimizer"])
    of_makes = gluon.Trainer(makes.collect_params(), "sgd", {"learning_rate": 0.01})
    of_judges = gluon.Trainer(judges.collect_params(), "sgd", {"learning_rate": 0.01})
    for step in range(STEPS):
        # It reaches the parameters of both, and is used of the one that judges.
        with autograd.record():
            loss = judges(makes(rows(step))).square().sum()
        loss.backward()
        of_judges.step(BATCH)
        with autograd.record():
            loss = -judges(makes(rows(step))).mean()
        loss.backward()
        of_makes.step(BATCH)
    (found,) = findings_of(hook, BatchDividedTwice())
    # It is the second one that updates.
    assert found.tensor == "usage/optimizer/SGD_2/averaged"


@pytest.mark.parametrize("hybridize", [False, True])
def test_arrays_of_numpy(out, hybridize):
    mx.npx.set_np()
    try:
        net = nn.HybridSequential()
        net.add(nn.Dense(5, in_units=6, activation="relu"), nn.Dense(3, in_units=5))
        net.initialize()
        if hybridize:
            net.hybridize()
        l2, target = losses.L2Loss(), ROWS.as_np_ndarray()
        hook = trained(out, lambda net, x: l2(net(x.as_np_ndarray()), target).mean(), net=net)
    finally:
        mx.npx.reset_np()
    assert len(findings_of(hook, BatchDividedTwice())) == 1
