"""Gluon scripts run by ``verify``."""

from __future__ import annotations

import pytest
from harness.verified import verify

pytest.importorskip("mxnet")
pytestmark = pytest.mark.cold

SCRIPT = """
import sys
import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.autograd import backward
mx.random.seed(2)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(4, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dropout(0.5), gluon.nn.Dense(1))
net.initialize()
net.hybridize()
trainer = gluon.Trainer(net.collect_params(".*(weight|bias|gamma|beta)"), "adam")
for step in range(4):
    x = nd.random.uniform(shape=(5, 3))
    with autograd.record():
        loss = gluon.loss.L2Loss()(net(x), nd.ones((5, 1)))
    backward([loss]) if step % 2 else loss.backward()
    trainer.step(5)
if "smd_agent" in sys.modules:
    nd.random.uniform()
"""


def test_trainers_and_both_ways_to_a_backward_pass_are_compared(runner):
    code, told = verify(runner, "--every", "1", runner.write(SCRIPT))
    assert (code, told["verdict"], told["failures"]) == (1, "different", [])
    # The running mean and variance are beside what is trained.
    assert (told["steps"], told["losses"], told["weights"], told["buffers"]) == (4, 4, 4 * 6, 4 * 2)
    # What comes after the last step shows in the numbers that are drawn next.
    first = told["first_difference"]
    assert first["at_end"]
    assert first["what"].startswith("weight next random numbers[0] (")
