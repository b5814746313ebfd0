"""BatchDividedTwice, as Gluon programs make it; ``test_mxnet_averaged_losses`` has more ways to come to a mean."""

from __future__ import annotations

import os

import pytest
from harness.runner import SITE_HOOK, Runner
from harness.warm import warm_process

from smd_agent import create_trial
from smd_agent.rules import BatchDividedTwice
from smd_agent.rules.judging import Judging

PYTHON = os.environ.get("MXNET_PYTHON")
COLLECTIONS = [{"CollectionName": "usage"}, {"CollectionName": "optimizer"}]
SAVED = {"CollectionConfigurations": COLLECTIONS, "HookParameters": {"save_interval": 1}}
PROGRAM = """
import sys
from mxnet import autograd, gluon, nd
way, divided = sys.argv[1:]
net = gluon.nn.Dense(5)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd")
criterion = gluon.loss.SoftmaxCrossEntropyLoss()
for _ in range(5):
    with autograd.record():
        loss = criterion(net(nd.random.normal(shape=(16, 6))), nd.arange(16) % 5)
        loss = loss.mean() if way == "mean" else loss.sum() if way == "sum" else loss
    loss.backward()
    trainer.step(int(divided))
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "way, divided, patience, count",
    [
        *(("mean", 16, 3, 1), ("mean", 16, 5, 1), ("mean", 16, 6, 0), ("mean", 1, 3, 0), ("mean", 4, 3, 0)),
        *(("sum", 16, 3, 0), ("losses", 16, 3, 0)),
    ],
)
def test_frameworks(tmp_path, way, divided, patience, count):
    if not PYTHON:
        pytest.skip("needs mxnet")
    runner = Runner(tmp_path)
    variables = runner.environment(SMDEBUG_CONFIG_FILE_PATH=runner.hook_file("run", SAVED), CUDA_VISIBLE_DEVICES="")
    words = [str(runner.write(PROGRAM)), way, str(divided)]
    done = warm_process(("mxnet",), variables, (PYTHON,)).run(words, variables, tmp_path, SITE_HOOK)
    assert done.returncode == 0, done.stderr
    judging = Judging(create_trial(str(tmp_path / "run"), timeout=0), [BatchDividedTwice(patience=patience)])
    judging.take_new()
    assert len(judging.verdict().findings) == count
