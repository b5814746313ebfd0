"""A Gluon training that breaks after its last saved step: weights that are not finite are in the run's last step."""

from __future__ import annotations

import numpy as np
import pytest

mx = pytest.importorskip("mxnet")

from mxnet import autograd, gluon, nd

import smd_agent.mxnet as smd


def train(hook, broken_from):
    """Train 20 steps; the block is gone when this returns."""
    net = gluon.nn.Dense(1, in_units=4, prefix="last_")
    net.initialize()
    hook.register_block(net)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    for number in range(20):
        x = nd.array(np.full((6, 4), np.nan if number == broken_from else 1.0))
        with autograd.record():
            loss = (net(x) ** 2).mean()
        loss.backward()
        trainer.step(1)


@pytest.mark.parametrize("asked", ["weights", "gradients"])
@pytest.mark.parametrize("broken_from", [None, 14])
def test_weights_at_the_end(out, broken_from, asked):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=10), include_collections=[asked])
    train(hook, broken_from)
    hook.close()
    trial = smd.create_trial(out)
    if broken_from is None or asked != "weights":
        assert trial.steps() == [0, 10]
    else:
        assert trial.steps() == [0, 10, 19]
        assert {*trial.tensor_names(step=19)} == {"last_weight", "last_bias"}
        assert np.isnan(trial.tensor("last_weight").value(19)).all()
