"""A running Gluon training, which saves more, a step whole, or stops when ``tap`` asks for it."""

from __future__ import annotations

import pytest

pytest.importorskip("mxnet")

from harness.tapped import TappedRun

from smd_agent.analysis.trial import create_trial
from smd_agent.core.modes import ModeKeys

TRAIN = """
import time, mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn
mx.random.seed(0)
net = nn.HybridSequential()
net.add(nn.Dense(16, activation="relu"), nn.Dense(2))
net.initialize()
HYBRIDIZE
loss = gluon.loss.SoftmaxCrossEntropyLoss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
net(mx.nd.zeros((4, 8)))
try:
    for step in range(100000):
        before = [one.data().copy() for one in net.collect_params().values()]
        with autograd.record():
            value = loss(net(mx.nd.random.normal(shape=(4, 8))), mx.nd.zeros((4,)))
        value.backward()
        try:
            trainer.step(4)
        except Exception:
            print("swallowed")
        mx.nd.waitall()
        time.sleep(0.01)
finally:
    after = [one.data() for one in net.collect_params().values()]
    print("finally", step, all((a.asnumpy() == b.asnumpy()).all() for a, b in zip(before, after)))
"""


@pytest.mark.parametrize("hybridize", ["", "net.hybridize()"], ids=["plain", "hybridized"])
def test_it_obeys(tmp_path, hybridize):
    with TappedRun(tmp_path, TRAIN.replace("HYBRIDIZE", hybridize)) as run:
        code, said = run.tap("--collection", "outputs", "--collection", "gradients", "--steps", "3")
        assert code == 0, said
        assert run.tap("--dump")[0] == 0
        assert run.tap("--stop", "enough")[0] == 0
        assert run.ended() == 86
    trial = create_trial(str(run.run))
    outputs, whole, stopped = (answer["step"] for answer in run.answers())
    asked = [*range(outputs, outputs + 3), whole]
    for collection in ("layers", "gradients"):
        (name, *_) = trial.tensor_names(collection=collection)
        assert trial.tensor(name).steps(ModeKeys.TRAIN) == asked
    (name, *_) = trial.tensor_names(collection="weights")
    assert trial.tensor(name).steps(ModeKeys.TRAIN) == [whole]
    # The first call, without gradients, is a step of its own.
    assert run.printed == f"finally {stopped} True\n"
    assert f"smd_agent: stopped at step {stopped}: enough (asked by tap)\n" in run.said
