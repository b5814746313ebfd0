"""A training of parameters that belong to no block, as a variational one is; they are saved with the net they move."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("mxnet")

from harness.compare import assert_untouched, run_both

from smd_agent.core.modes import ModeKeys

RATE, ROWS = 0.1, 16
PROGRAM = f"""
import json

import mxnet as mx
from mxnet import autograd, gluon, nd

mx.random.seed(0)
net = gluon.nn.Dense(1)
net.initialize()
x = nd.random.normal(shape=({ROWS}, 4))
y = x.sum(1, keepdims=True)
net(x)
means = [gluon.Parameter(f"mean_{{name}}", shape=p.shape) for name, p in zip("wb", net.collect_params().values())]
for mean in means:
    mean.initialize(mx.init.Zero())
trainer = gluon.Trainer(means, "sgd", {{"learning_rate": {RATE}}})
loss_of = gluon.loss.L2Loss()
losses = []
for step in range(6):
    with autograd.record():
        for mean, p in zip(means, net.collect_params().values()):
            p._data[0] = mean.data() + 0.01 * nd.random.normal(shape=mean.shape)
        loss = loss_of(net(x), y)
    loss.backward()
    trainer.step({ROWS})
    losses.append(loss.asnumpy().tolist())
print(json.dumps(losses))
"""
LINE = "smd_agent: parameters are trained that belong to no gluon.Block: they are saved by their own names"


def test_parameters_without_a_block_are_saved_from_the_second_iteration_on(module_runner):
    runner = module_runner("loose")
    runner.warm = ("mxnet",)
    script = runner.folder / "train.py"
    script.write_text(PROGRAM)
    config = {
        "HookParameters": {"save_interval": 1},
        "CollectionConfigurations": [{"CollectionName": name} for name in ("weights", "gradients", "losses")],
    }
    both = run_both(runner, script, config=config)
    assert_untouched(both)
    assert sum(line.startswith(LINE) for line in both.said) == 1
    trial, losses = both.trial, json.loads(both.plain.stdout)
    assert trial.steps(mode=ModeKeys.TRAIN) == [1, 2, 3, 4, 5]
    (loss,) = trial.tensor_names(collection="losses")
    for step in range(1, 6):
        np.testing.assert_array_equal(trial.tensor(loss).value(step), np.float32(losses[step]))
    assert sorted(trial.tensor_names(regex="^gradient/")) == ["gradient/mean_b", "gradient/mean_w"]
    for step in range(1, 5):
        before, after = (trial.tensor("mean_w").value(at) for at in (step, step + 1))
        np.testing.assert_allclose(after, before - RATE / ROWS * trial.tensor("gradient/mean_w").value(step), rtol=1e-5)


def test_a_block_that_is_called_beside_the_trained_one_is_not_taken_for_it(module_runner):
    runner = module_runner("beside")
    runner.warm = ("mxnet",)
    script = runner.folder / "train.py"
    script.write_text("""
import mxnet as mx
from mxnet import autograd, gluon, nd

mx.random.seed(0)
first, net = gluon.nn.Dense(3), gluon.nn.Dense(1)
for one in (first, net):
    one.initialize()
x, y = nd.random.normal(shape=(8, 4)), nd.ones((8, 1))
net(first(x))
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
for warming_up in range(2):
    with autograd.record():
        out = first(x).sum()
    out.backward()
for step in range(3):
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(first(x)), y)
    loss.backward()
    trainer.step(8)
print(loss.asnumpy().tolist())
""")
    both = run_both(runner, script, config={"HookParameters": {"save_interval": 1}})
    assert_untouched(both)
    assert not any("belong to no" in line for line in both.said)
    assert both.trial.steps(mode=ModeKeys.TRAIN) == [0, 1, 2]
