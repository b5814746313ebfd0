"""LoadedThenInitialized, as Gluon programs make it; ``test_mxnet_lost_loads`` has more of what looks alike."""

from __future__ import annotations

import os

import pytest
from harness.runner import SITE_HOOK, Runner
from harness.warm import warm_process

from smd_agent import create_trial
from smd_agent.rules import LoadedThenInitialized
from smd_agent.rules.judging import Judging

PYTHON = os.environ.get("MXNET_PYTHON")
SAVED = {"CollectionConfigurations": [{"CollectionName": "usage"}], "HookParameters": {"save_interval": 1}}
PROGRAM = """
import sys
from mxnet import autograd, gluon, nd
way, file = sys.argv[1:]
net = gluon.nn.Dense(5, in_units=6)
net.initialize()
net.save_parameters(file)
net = gluon.nn.Dense(5, in_units=6)
if way == "loaded last":
    net.initialize()
net.load_parameters(file)
if way == "evaluated":
    net(nd.ones((2, 6)))
if way != "loaded last":
    net.initialize(force_reinit=way != "kept")
trainer = gluon.Trainer(net.collect_params(), "sgd")
criterion = gluon.loss.SoftmaxCrossEntropyLoss()
for _ in range(3):
    with autograd.record():
        loss = criterion(net(nd.random.normal(shape=(16, 6))), nd.arange(16) % 5)
    loss.backward()
    trainer.step(16)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("way, count", [("lost", 1), ("loaded last", 0), ("evaluated", 0), ("kept", 0)])
def test_frameworks(tmp_path, way, count):
    if not PYTHON:
        pytest.skip("needs mxnet")
    runner = Runner(tmp_path)
    variables = runner.environment(SMDEBUG_CONFIG_FILE_PATH=runner.hook_file("run", SAVED), CUDA_VISIBLE_DEVICES="")
    words = [str(runner.write(PROGRAM)), way, str(tmp_path / "net.params")]
    done = warm_process(("mxnet",), variables, (PYTHON,)).run(words, variables, tmp_path, SITE_HOOK)
    assert done.returncode == 0, done.stderr
    judging = Judging(create_trial(str(tmp_path / "run"), timeout=0), [LoadedThenInitialized()])
    judging.take_new()
    assert len(judging.verdict().findings) == count
