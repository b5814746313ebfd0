"""The series of whole Gluon programs, with the agent and without, and of those that are killed."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("mxnet")

from harness.compare import assert_untouched, run_both
from harness.killed import assert_series_survives

from smd_agent.core.modes import ModeKeys

BEGINNING = """
import sys
import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
mx.random.seed(0)
np.random.seed(0)
net = nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(nn.Dense(8, activation="relu"), nn.Dropout(0.2), nn.Dense(3))
net.initialize(mx.init.Xavier())
criterion = gluon.loss.SoftmaxCrossEntropyLoss()
def batch():
    return nd.random.normal(shape=(6, 5)), nd.array(np.random.randint(0, 3, 6))
"""
TRAINING = f"""{BEGINNING}
if "hybrid" in sys.argv:
    net.hybridize(static_alloc=True)
schedule = mx.lr_scheduler.FactorScheduler(7, 0.5)
trainer = gluon.Trainer(net.collect_params(), "adam", {{"learning_rate": 0.1, "lr_scheduler": schedule}})
losses = []
for step in range(60):
    x, y = batch()
    if step == 30:
        net(x)
    with autograd.record():
        loss = criterion(net(x), y)
    loss.backward()
    trainer.step(6)
    losses.append(loss)
    if step % 20 == 13:
        net(x)
print([float(loss.mean().asscalar()) for loss in losses])
print(nd.random.uniform(shape=(2,)).asnumpy(), net[0].weight.data().asnumpy().tobytes().hex())
"""
FITTED = f"""{BEGINNING}
from mxnet.gluon.contrib.estimator import Estimator
data = gluon.data.ArrayDataset(np.random.rand(60, 5).astype("f"), np.random.randint(0, 3, 60).astype("f"))
loader = gluon.data.DataLoader(data, 6, num_workers=int(sys.argv[1]))
trainer = gluon.Trainer(net.collect_params(), "sgd", {{"learning_rate": 0.1}})
metric = mx.metric.Accuracy()
Estimator(net, criterion, metric, trainer=trainer).fit(loader, epochs=3)
print(net[0].weight.data().asnumpy().tobytes().hex())
"""
KILLED = f"""{BEGINNING}
trainer = gluon.Trainer(net.collect_params(), "sgd", {{"learning_rate": 0.01}})
for step in range(1000000):
    x, y = batch()
    with autograd.record():
        loss = criterion(net(x), y)
    loss.backward()
    trainer.step(6)
    tell(step, loss.mean().asscalar())
    time.sleep(0.002)
"""


@pytest.mark.parametrize("kind", ["imperative", "hybrid"])
def test_a_training_is_the_same_with_it_and_saved_losses_are_those_of_the_series(runner, kind):
    both = run_both(runner, runner.write(TRAINING), kind, config={"HookParameters": {"save_interval": 10}})
    assert_untouched(both)
    printed = json.loads(next(line for line in both.plain.stdout.splitlines() if line.startswith("[")))
    trial = both.trial
    table = trial.series()["steps"]
    of_mode = dict(zip(table.mode_steps.tolist(), table["series/loss"].tolist(), strict=True))
    assert [*of_mode] == [*range(60)]
    assert [of_mode[step] for step in of_mode] == pytest.approx([printed[step] for step in of_mode], rel=1e-6)
    saved = trial.tensor("softmaxcrossentropyloss0_output_0")
    common = {*saved.steps(ModeKeys.TRAIN)} & {*of_mode}
    assert {0, 10, 20} <= common
    for step in common:
        assert np.mean(saved.value(step, ModeKeys.TRAIN)) == pytest.approx(of_mode[step], rel=1e-6)
    rates = dict(zip(table.mode_steps.tolist(), table["series/learning_rate"].tolist(), strict=True))
    assert [rates[step] for step in range(30)] == [0.1 * 0.5 ** (step // 7) for step in range(30)]


@pytest.mark.parametrize("workers", [0, 2])
def test_fit_and_loaders_in_other_processes(runner, workers):
    both = run_both(runner, runner.write(FITTED), str(workers), config={"HookParameters": {"save_interval": 10}})
    assert both.plain.stdout.splitlines()[-1] == both.agent.stdout.splitlines()[-1]
    table = both.trial.series()["steps"]
    assert table.mode_steps.tolist() == [*range(30)]
    assert np.isfinite(table["series/loss"]).all()


def test_rows_that_a_kill_ends_are_there(tmp_path):
    assert_series_survives(tmp_path, KILLED, relative=1e-6)
