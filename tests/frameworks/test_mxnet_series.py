"""The series of Gluon: a row for each training step, saved or not, and a training that is none the wiser."""

from __future__ import annotations

import gc
import math
import threading

import numpy as np
import pytest

mxnet = pytest.importorskip("mxnet")

from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

import smd_agent.mxnet as smd
from smd_agent.core import budget
from smd_agent.mxnet.every_step import EveryStep
from smd_agent.mxnet.late_losses import Sums
from smd_agent.mxnet.trainer_watch import updates

SELDOM = smd.SaveConfig(save_interval=1000)


@pytest.fixture
def early_rests(monkeypatch):
    """Have steps rest after thirty rows."""
    monkeypatch.setattr(budget, "FIRST_ROWS", 30)


def small(prefix="net_", ctx=None, units=3):
    mxnet.random.seed(0)
    net = nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(nn.Dense(4, activation="tanh", in_units=5), nn.Dense(units, in_units=4))
    net.initialize(ctx=ctx)
    return net


def trainer_of(net, rate=0.1, **options):
    return gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": rate, **options})


def hook_for(out, *blocks):
    hook = smd.Hook(out, save_config=SELDOM)
    for block in blocks:
        hook.register_block(block)
    return hook


def loss_of(net, size=6, ctx=None):
    labels = nd.array(np.arange(size) % 3, ctx=ctx)
    return gluon.loss.SoftmaxCrossEntropyLoss()(net(nd.random.normal(shape=(size, 5), ctx=ctx)), labels)


def mean_of(*losses):
    return pytest.approx(float(np.mean(np.concatenate([loss.asnumpy() for loss in losses]))), rel=1e-6)


def last_rows(rows):
    """The rows by step; a step that turns out to go on has one again, complete."""
    return {row["step"]: row for row in rows("steps")}


def losses(rows):
    return [row.get("series/loss") for row in last_rows(rows).values()]


@pytest.mark.parametrize("hybridized", [False, True])
def test_the_loss_of_every_step_is_the_programs(out, rows, hybridized):
    net = small()
    if hybridized:
        net.hybridize()
    trainer, hook, printed, rates = trainer_of(net), hook_for(out, net), [], []
    for step in range(7):
        with autograd.record():
            loss = loss_of(net)
        loss.backward()
        trainer.set_learning_rate(0.1 / (step + 1))
        rates.append(trainer.learning_rate)
        trainer.step(6)
        printed.append(mean_of(loss))
    hook.close()
    assert losses(rows) == printed
    assert [row["step"] for row in rows("steps")] == [*range(7)]
    assert [row["series/learning_rate"] for row in rows("steps")] == rates
    assert all(0 < row["series/seconds"] < 10 for row in rows("steps")[1:])
    assert "series/seconds" not in rows("steps")[0]
    assert "series/loss_scale" not in rows("steps")[0]


def test_rows_are_written_as_soon_as_the_engine_has_their_losses(out, rows):
    net = small()
    trainer, hook = trainer_of(net), hook_for(out, net)
    for step in range(5):
        with autograd.record():
            loss = loss_of(net)
        loss.backward()
        trainer.step(6)
        nd.waitall()
        assert len(rows("steps")) >= step
    hook.close()
    assert len(rows("steps")) == 5


def test_a_program_that_waits_for_nothing_is_not_held_up(out, rows, monkeypatch):
    net = small()
    net.hybridize()
    trainer, hook = trainer_of(net), hook_for(out, net)
    with autograd.record():
        loss = loss_of(net)
    # Step 0 is saved.
    loss.backward()
    trainer.step(6)
    waited = []
    monkeypatch.setattr(mxnet.nd.NDArray, "wait_to_read", lambda *_: waited.append(1))
    monkeypatch.setattr(mxnet.nd.NDArray, "asnumpy", lambda *_: waited.append(1))
    large = nd.ones((1500, 1500))
    nd.waitall()
    for _ in range(6):
        with autograd.record():
            # The engine has seconds to do before it comes to the losses.
            x = nd.dot(large, large)[:6, :5] * 1e-6
            for _ in range(2):
                x = nd.dot(nd.dot(x, nd.ones((5, 1500))), large)[:, :5] * 1e-6
            loss = net(x).square().mean()
        loss.backward()
        trainer.step(6)
    assert not waited
    monkeypatch.undo()
    hook.close()


@pytest.mark.parametrize("array", ["float16", "float64", "numpy", "scalar", "several", "function"])
def test_what_a_pass_begins_from_may_be_of_any_kind(out, rows, array):
    net = small()
    trainer, hook = trainer_of(net), hook_for(out, net)
    with autograd.record():
        loss = loss_of(net)
        heads = {
            "float16": lambda: loss.astype("float16"),
            "float64": lambda: loss.astype("float64"),
            "numpy": lambda: loss.as_np_ndarray(),
            "scalar": lambda: loss.sum(),
            "several": lambda: [loss.mean(), loss_of(net).mean()],
            "function": lambda: [loss, loss_of(net, 3)],
        }[array]()
    if isinstance(heads, list):
        autograd.backward(heads)
    else:
        heads.backward()
    trainer.step(6)
    hook.close()
    expected = {
        "scalar": lambda: 6 * np.mean(loss.asnumpy()),
        "several": lambda: sum(float(head.asscalar()) for head in heads),
        "function": lambda: np.mean(np.concatenate([head.asnumpy() for head in heads])),
    }.get(array, lambda: np.mean(loss.asnumpy()))()
    assert losses(rows) == [pytest.approx(expected, rel=2e-3 if array == "float16" else 1e-6)]


def test_losses_of_accumulated_passes_are_those_of_one_large_batch(out, rows):
    net = small()
    for parameter in net.collect_params().values():
        parameter.grad_req = "add"
    trainer, hook, printed = trainer_of(net), hook_for(out, net), []
    for _ in range(4):
        parts = []
        for size in (6, 3, 6):
            with autograd.record():
                loss = loss_of(net, size)
            loss.backward()
            parts.append(loss)
        trainer.step(15)
        net.collect_params().zero_grad()
        printed.append(mean_of(*parts))
    hook.close()
    assert losses(rows) == printed


def test_contexts_are_one_batch(out, rows):
    contexts = [mxnet.cpu(0), mxnet.cpu(1)]
    net = small(ctx=contexts)
    trainer, hook, printed = trainer_of(net), hook_for(out, net), []
    for _ in range(3):
        with autograd.record():
            parts = [loss_of(net, 4, ctx) for ctx in contexts]
        for loss in parts:
            loss.backward()
        trainer.step(8)
        printed.append(mean_of(*parts))
    hook.close()
    assert losses(rows) == printed


def test_trainers_that_take_turns_have_one_row_for_a_round(out, rows):
    generator, critic = small("generator_", units=5), small("critic_", units=1)
    trainers = [trainer_of(critic, 0.1), trainer_of(generator, 0.2)]
    hook, printed = hook_for(out, generator, critic), []
    for _ in range(5):
        total = 0.0
        for trainer in trainers:
            with autograd.record():
                loss = critic(generator(nd.random.normal(shape=(6, 5)))).square()
            loss.backward()
            trainer.step(6, ignore_stale_grad=True)
            total += float(loss.mean().asscalar())
        printed.append(pytest.approx(total, rel=1e-6))
    hook.close()
    assert losses(rows) == printed
    assert [*last_rows(rows)] == [*range(5)]
    assert {row["series/learning_rate"] for row in last_rows(rows).values()} == {0.1}


def test_an_evaluation_amid_a_step_has_no_row_of_its_own(out, rows):
    net = small()
    trainer, hook, printed, steps = trainer_of(net), smd.Hook(out, save_config=SELDOM), [], []
    hook.follow_calls()
    hook.register_block(net)
    for _ in range(3):
        with autograd.record():
            loss = loss_of(net)
        steps.append(hook.position.step)
        loss_of(net)
        loss.backward()
        trainer.step(6)
        loss_of(net)
        printed.append(mean_of(loss))
    hook.close()
    assert losses(rows) == printed
    assert [row["step"] for row in rows("steps")] == steps
    assert [row["mode_step"] for row in rows("steps")] == [0, 1, 2]
    assert {row["mode"] for row in rows("steps")} == {"TRAIN"}


def test_without_a_trainer_each_pass_has_a_row(out, rows):
    net = small()
    hook, printed = hook_for(out, net), []
    for _ in range(4):
        with autograd.record():
            loss = loss_of(net)
        loss.backward()
        for parameter in net.collect_params().values():
            parameter.set_data(parameter.data() - 0.1 * parameter.grad())
        printed.append(mean_of(loss))
    hook.close()
    assert losses(rows) == printed
    assert "series/learning_rate" not in rows("steps")[0]


def test_a_schedule_is_asked_no_more_often_than_without_us(out, rows):
    asked = []

    class Counting(mxnet.lr_scheduler.LRScheduler):
        def __call__(self, update):
            asked.append(update)
            return 1.0 / len(asked)

    net = small()
    hook = hook_for(out, net)
    trainer, used = trainer_of(net, lr_scheduler=Counting()), []
    for _ in range(4):
        before = len(asked)
        with autograd.record():
            loss = loss_of(net)
        loss.backward()
        trainer.step(6)
        used.append(1.0 / (before + 1))
    hook.close()
    assert [row["series/learning_rate"] for row in rows("steps")] == used
    again = len(asked)
    trainer = trainer_of(other := small("other_"), lr_scheduler=Counting())
    asked.clear()
    for _ in range(4):
        with autograd.record():
            loss = loss_of(other)
        loss.backward()
        trainer.step(6)
    assert again == len(asked)


def test_losses_are_those_before_scaling_and_updates_that_are_skipped_are_told(out, rows):
    from mxnet.contrib.amp.loss_scaler import LossScaler

    net = small()
    trainer, hook, printed, scales = trainer_of(net), hook_for(out, net), [], []
    trainer._amp_loss_scaler, trainer._amp_original_scale = LossScaler(), trainer._scale
    for step in range(5):
        scales.append(trainer._amp_loss_scaler.loss_scale)
        with autograd.record():
            loss = loss_of(net) * (math.inf if step == 2 else 1.0)
            with mxnet.contrib.amp.scale_loss(loss, trainer) as scaled:
                autograd.backward(scaled)
        trainer.step(6)
        printed.append(mean_of(loss))
    hook.close()
    assert losses(rows) == printed
    assert [row["series/loss_scale"] for row in rows("steps")] == scales
    assert [row["series/skipped"] for row in rows("steps")] == [0.0, 0.0, 1.0, 0.0, 0.0]


def test_a_loss_that_is_not_finite_is_in_its_row(out, rows):
    net = small()
    trainer, hook = trainer_of(net), hook_for(out, net)
    for factor in (1.0, math.nan, math.inf):
        with autograd.record():
            loss = nd.abs(loss_of(net)) * factor
        loss.backward()
        trainer.step(6)
        net.initialize(force_reinit=True)
    hook.close()
    found = losses(rows)
    assert found[0] > 0
    assert math.isnan(found[1])
    assert found[2] == math.inf


def test_an_operation_that_fails_is_told_to_the_program_once(out, rows):
    net = small()
    trainer, hook = trainer_of(net), hook_for(out, net)
    with autograd.record():
        loss = loss_of(net)
    loss.backward()
    trainer.step(6)
    nd.waitall()
    with autograd.record():
        broken = nd.random.normal(0, -1, shape=(6,))
        loss = loss_of(net) + broken
    loss.backward()
    trainer.step(6)
    with pytest.raises(mxnet.base.MXNetError):
        loss.asnumpy()
    nd.waitall()
    with autograd.record():
        loss = loss_of(net)
    loss.backward()
    trainer.step(6)
    hook.close()
    # What failed has no loss; the others are there.
    assert [value is None for value in losses(rows)] == [False, True, False]


def test_an_update_that_fails_leaves_the_following_steps_right(out, rows):
    net = small()
    trainer, hook, printed = trainer_of(net), hook_for(out, net), []
    for step in range(3):
        with autograd.record():
            loss = loss_of(net)
        if step == 1:
            with pytest.raises(UserWarning):
                trainer.step(6)
        loss.backward()
        trainer.step(6)
        printed.append(mean_of(loss))
    hook.close()
    assert losses(rows) == printed


def test_short_steps_rest_and_what_watches_them_is_out_of_the_way(out, rows, early_rests):
    net = small()
    trainer, hook = trainer_of(net), hook_for(out, net)
    resting = False
    for _ in range(400):
        with autograd.record():
            loss = loss_of(net)
        loss.backward()
        trainer.step(6)
        resting = resting or updates.listener is None
    hook.close()
    found = [row["step"] for row in rows("steps")]
    assert found[:30] == [*range(30)]
    assert resting
    assert len(found) < 400


def test_a_trainer_that_is_made_amid_a_rest_leaves_no_row_without_a_loss(out, rows, early_rests):
    net = small()
    hook = hook_for(out, net)
    for _ in range(12):
        trainer = trainer_of(net)
        for _ in range(25):
            with autograd.record():
                loss = loss_of(net)
            loss.backward()
            trainer.step(6)
    hook.close()
    assert len(rows("steps")) < 300
    assert all("series/loss" in row and "series/learning_rate" in row for row in rows("steps"))


def test_a_pause_that_a_further_block_ends_counts_into_no_step(out, rows, monkeypatch):
    now = 0.0
    monkeypatch.setattr("smd_agent.framework.series_rows.perf_counter", lambda: now)
    monkeypatch.setattr("smd_agent.core.budget.Rests.after", lambda rests, seconds, others, own=0.0: 3)
    net, other = small(), small("other_")
    trainer, hook = trainer_of(net), hook_for(out, net)
    registered = False
    for step in range(60):
        if step > 40 and updates.rest == 1 and not registered:
            hook.register_block(other)
            registered = True
        with autograd.record():
            loss = loss_of(net)
        loss.backward()
        now += 1
        trainer.step(6)
    hook.close()
    assert registered
    lasted = [row.get("series/seconds") for row in rows("steps")[1:]]
    assert {*lasted} == {1.0, None}
    assert lasted.count(None) == 1


def test_steps_of_other_threads_do_no_harm(out, rows):
    nets = [small(f"net{number}_") for number in range(2)]
    hook = hook_for(out, *nets)

    def train(net):
        trainer = trainer_of(net)
        for _ in range(40):
            with autograd.record():
                loss = loss_of(net)
            loss.backward()
            trainer.step(6)

    threads = [threading.Thread(target=train, args=(net,)) for net in nets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hook.close()
    assert len(rows("steps")) > 10


def test_each_worker_of_a_job_has_rows_of_its_own(out, monkeypatch):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    printed = {}
    for rank in ("0", "1"):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", rank)
        net = small()
        hook = smd.Hook(out, save_config=SELDOM, include_workers="all")
        hook.register_block(net)
        trainer = trainer_of(net)
        for _ in range(3):
            with autograd.record():
                loss = loss_of(net)
            loss.backward()
            trainer.step(6)
            printed.setdefault(f"worker_{rank}", []).append(mean_of(loss))
        hook.finish(end_marker=rank == "1")
    trial = smd.create_trial(out)
    for worker, expected in printed.items():
        assert trial.series(worker)["steps"]["series/loss"].tolist() == expected


def test_it_is_not_taken_where_nothing_is_wanted(out, rows, monkeypatch):
    monkeypatch.setenv("USE_SMDEBUG", "0")
    net = small()
    trainer, hook = trainer_of(net), hook_for(out, net)
    with autograd.record():
        loss = loss_of(net)
    loss.backward()
    trainer.step(6)
    hook.close()
    assert not rows("steps")
    assert updates.listener is not hook.every_step


def test_places_are_used_again():
    sums, array = Sums(), nd.ones((4,))
    found = sums.of(array)
    nd.waitall()
    assert found.is_known()
    assert (found.value, found.count) == (4.0, 4)
    for value in range(50):
        one = sums.of(array * value)
        nd.waitall()
        assert one.is_known()
        assert one.value == 4.0 * value
    assert len(sums._free["float32"]) == 1
    assert sums.of(nd.ones((2,), dtype="int32")) is None


def test_a_net_goes_with_the_program(out):
    net = small()
    trainer, hook = trainer_of(net), hook_for(out, net)
    with autograd.record():
        loss = loss_of(net)
    loss.backward()
    trainer.step(6)
    references = [hook.models[0]]
    del net, trainer, loss
    gc.collect()
    assert references[0].model is None
    hook.close()
    assert isinstance(hook.every_step, EveryStep)
