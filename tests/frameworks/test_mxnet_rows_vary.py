"""A training whose batches have another number of rows in each step, every step of which is saved whole."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("mxnet")

from mxnet import autograd, gluon, nd
from mxnet.gluon import nn

import smd_agent.mxnet as smd

ROWS = (61, 64, 1, 30, 50, 84, 21, 83)


@pytest.mark.parametrize("hybrid", [False, True])
def test_batches_of_any_number_of_rows(out, hybrid, capsys):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Flatten(), nn.Dense(10))
    net.initialize()
    if hybrid:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01})
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=1), save_all=True)
    hook.register_block(net)
    rng = np.random.default_rng(0)
    for rows in ROWS:
        with autograd.record():
            x, y = nd.array(rng.random((rows, 1, 28, 28))), nd.array(rng.integers(0, 10, rows))
            loss = loss_of(net(x), y)
        loss.backward()
        trainer.step(rows)
    hook.close()
    assert "failed" not in capsys.readouterr().err
    trial = smd.create_trial(out)
    steps = [*range(len(ROWS))]
    assert trial.steps() == steps
    facts = ("usage/input/", "usage/loss/", "input_digest/", "update/")
    names = [name for name in trial.tensor_names() if name.startswith((*facts, "gradient/"))]
    # A guess takes labels of some steps.
    names = [name for name in names if not name.endswith(("/guess", "/least"))]
    assert {name.partition("/")[0] for name in names} == {"usage", "input_digest", "update", "gradient"}
    assert {name: trial.tensor(name).steps() for name in names if trial.tensor(name).steps() != steps} == {}
