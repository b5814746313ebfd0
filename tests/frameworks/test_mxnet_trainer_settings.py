"""Settings of Gluon's Trainers as their updates use them, and the names of the Trainers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mxnet")

import mxnet as mx
from harness.gluon_facts import arrays, backward, findings_of, hooked, make_net, rows, trial_of, values
from mxnet import autograd, gluon
from mxnet.contrib import amp

from smd_agent import guard
from smd_agent.framework.replaced_functions import is_replaced
from smd_agent.rules import UpdatesSkipped


class Halved(mx.lr_scheduler.LRScheduler):
    """Has half the rate at each update, and counts how often it is asked."""

    asked = 0

    def __call__(self, num_update):
        self.asked += 1
        return self.base_lr * 0.5**num_update


@pytest.mark.parametrize("on_store", [False, True])
def test_settings_are_those_that_the_update_used(out, on_store):
    def run(hook_of):
        schedule = Halved()
        contexts = [mx.cpu(0), mx.cpu(1)]
        net, other = make_net(ctx=contexts), make_net("other_", ctx=contexts)
        net[0].bias.wd_mult = 0.0
        settings = {"learning_rate": 0.8, "lr_scheduler": schedule, "wd": 0.25, "beta1": 0.8, "beta2": 0.95}
        first = gluon.Trainer(net.collect_params(), "adam", settings, update_on_kvstore=on_store)
        second = gluon.Trainer(other.collect_params(), "sgd", {"learning_rate": 0.5, "momentum": 0.75})
        third = gluon.Trainer(
            make_net("third_").collect_params(), mx.optimizer.SGD(learning_rate=0.25, momentum=0.5), kvstore=None
        )
        hook = hook_of(net, other)
        for step in range(3):
            with autograd.record():
                losses = [((net(x) + other(x)) ** 2).mean() for x in (rows(step, ctx=c) for c in contexts)]
            autograd.backward(losses)
            first.step(4)
            second.step(1)
            third.step(1, ignore_stale_grad=True)
        return hook, schedule.asked, {**arrays(net), **arrays(other)}

    _, asked, plain = run(lambda *_: None)
    hook, asked_by_all, weights = run(lambda *nets: hooked(out, *nets))
    trial = trial_of(hook)
    found = {name: values(trial, name) for name in trial.tensor_names(collection="optimizer")}
    rates = [0.4, 0.2, 0.1]
    expected = {
        **{f"optimizer/Adam/group_{group}/lr": rates for group in (0, 1)},
        **{f"optimizer/Adam/group_{group}/beta_1": [0.8] * 3 for group in (0, 1)},
        **{f"optimizer/Adam/group_{group}/beta_2": [0.95] * 3 for group in (0, 1)},
        **{f"optimizer/Adam/group_{group}/eps": [1e-8] * 3 for group in (0, 1)},
        # A Trainer has its parameters by name, so the bias is its first.
        "optimizer/Adam/group_0/weight_decay": [0.0] * 3,
        "optimizer/Adam/group_1/weight_decay": [0.25] * 3,
        "optimizer/Adam/rescale_grad": [0.25] * 3,
        "optimizer/SGD/lr": [0.5] * 3,
        "optimizer/SGD/weight_decay": [0.0] * 3,
        "optimizer/SGD/momentum": [0.75] * 3,
        "optimizer/SGD/rescale_grad": [1.0] * 3,
    }
    # The third Trainer updates once the step of the two that train the nets has ended, or in it.
    third = {name: found.pop(name) for name in [*found] if name.startswith("optimizer/SGD_2/")}
    assert found == expected
    assert {name.rpartition("/")[2]: told[0] for name, told in third.items()} == {
        "lr": 0.25,
        "weight_decay": 0.0,
        "momentum": 0.5,
        "rescale_grad": 1.0,
    }
    # A schedule is the program's own: it is asked as often as without us.
    assert asked_by_all == asked > 0
    for name, array in plain.items():
        np.testing.assert_array_equal(weights[name], array)


def test_the_loss_scale_is_the_one_of_the_update(out, monkeypatch):
    # Without ``amp.init``, which would change all operations of this process.
    monkeypatch.setattr(amp.amp, "_amp_initialized", True)
    monkeypatch.setattr(amp.amp, "_amp_loss_scale_initialized", True)
    net = make_net()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    amp.init_trainer(trainer)
    hook = hooked(out, net)
    scales, moves = [], []
    for step in range(4):
        before = arrays(net)["net_dense1_weight"]
        with autograd.record():
            loss = (net(rows(step)) ** 2).mean()
            if step == 1:
                loss = loss * float("inf")
            with amp.scale_loss(loss, trainer) as scaled:
                scales.append(trainer._amp_loss_scaler.loss_scale)
                scaled.backward()
        trainer.step(1)
        moves.append(np.linalg.norm(arrays(net)["net_dense1_weight"] - before))
    trial = trial_of(hook)
    assert len({*scales}) == 2
    assert values(trial, "optimizer/SGD/loss_scale") == scales
    assert values(trial, "optimizer/SGD/skipped") == [0, 1, 0, 0]
    # An update that is skipped moves nothing.
    assert moves[1] == 0 < moves[0]
    assert values(trial, "update/net_dense1_weight") == pytest.approx(moves, rel=2e-5)


@pytest.mark.parametrize("skips", [True, False])
def test_a_scaler_that_skips_every_update_is_found_and_one_that_finds_its_scale_is_not(out, monkeypatch, skips):
    monkeypatch.setattr(amp.amp, "_amp_initialized", True)
    monkeypatch.setattr(amp.amp, "_amp_loss_scale_initialized", True)
    net = make_net()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    amp.init_trainer(trainer)
    hook = hooked(out, net)
    for step in range(30):
        with autograd.record():
            loss = (net(rows(step)) ** 2).mean()
            if skips or step < 3:
                loss = loss * float("inf")
            with amp.scale_loss(loss, trainer) as scaled:
                scaled.backward()
        trainer.step(1)
    assert not is_replaced(type(trainer._amp_loss_scaler), "has_overflow")
    assert bool(findings_of(hook, UpdatesSkipped())) is skips


def test_the_trainer_of_a_training_that_is_over_leaves_its_name(out):
    hook = hooked(out)
    for _ in range(3):
        net = make_net()
        hook.register_block(net)
        trainer = gluon.Trainer(net.collect_params(), "ftrl", {"learning_rate": 0.1})
        for step in range(2):
            backward(net, rows(step))
            trainer.step(1)
        del net, trainer
    trial = trial_of(hook)
    assert {name.split("/")[1] for name in trial.tensor_names(collection="optimizer")} == {"Ftrl"}
    assert values(trial, "optimizer/Ftrl/lr") == [0.1] * 6


def trained(hook_of, stale_at=None):
    """Train with a schedule; what is raised, and the weights."""
    net, raised = make_net(), []
    schedule = mx.lr_scheduler.FactorScheduler(1, 0.5)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5, "lr_scheduler": schedule})
    hook = hook_of(net)
    for step in range(3):
        if step != stale_at:
            backward(net, rows(step))
        try:
            trainer.step(1)
        except UserWarning as error:
            raised.append(str(error))
        assert not is_replaced(type(trainer._optimizer), "_get_lrs")
    return hook, raised, arrays(net)


def test_an_update_that_fails_is_the_programs_own_failure(out):
    _, expected, plain = trained(lambda _: None, stale_at=1)
    hook, raised, weights = trained(lambda net: hooked(out, net), stale_at=1)
    assert raised == expected
    assert len(raised) == 1
    for name, array in plain.items():
        np.testing.assert_array_equal(weights[name], array)
    assert values(trial_of(hook), "optimizer/SGD/lr")[0] == 0.5


@pytest.mark.parametrize(
    "broken",
    [
        "mxnet.fact_adapters.part_of",
        "mxnet.fact_adapters.changes",
        "mxnet.fact_adapters.groups_of",
        "mxnet.fact_adapters.arrays_in",
        "mxnet.trainer_settings.title_of",
        "mxnet.trainer_settings.Patch",
        "mxnet.trainer_settings.zip",
        "framework.parameter_facts.facts.described",
    ],
)
def test_a_failure_of_ours_costs_its_part_and_the_training_goes_on(out, monkeypatch, capsys, broken):
    _, _, plain = trained(lambda _: None)
    monkeypatch.setattr(guard, "strict", False)

    def fail(*_, **__):
        raise RuntimeError("broken for the test")

    monkeypatch.setattr(f"smd_agent.{broken}", fail, raising=False)
    everything = ["updates", "optimizer", "input_digests", "parameters"]
    hook, raised, weights = trained(lambda net: hooked(out, net, include_collections=everything))
    hook.close()
    said = [line for line in capsys.readouterr().err.splitlines() if "failed" in line]
    # One when a part of what is saved has failed, and one when it is not saved any more.
    parts = {line.partition(" of step 0 may be missing")[0] for line in said if "may be missing" in line}
    assert parts
    assert len(said) == 2 * len(parts)
    assert all("(RuntimeError: broken for the test)" in line and line.endswith("all else goes on") for line in said)
    assert raised == []
    for name, array in plain.items():
        np.testing.assert_array_equal(weights[name], array)
