"""SoftmaxOverSamples, on models that end with a softmax, in three frameworks."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from harness.runner import SITE_HOOK, Runner
from harness.warm import warm_process
from torch import nn
from torch.nn import functional

from smd_agent import create_trial
from smd_agent.framework import loss_facts
from smd_agent.rules import SoftmaxOverSamples
from smd_agent.rules.finding import Severity
from smd_agent.rules.judging import Judging

CLASSES = 5
QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
USAGE = {"CollectionConfigurations": [{"CollectionName": "usage"}], "HookParameters": {"save_interval": 1}}
# Of each framework: its interpreter, its packages, and a training by a loss that is given what a softmax over an axis
# has returned.
FRAMEWORKS = {
    "PyTorch": (
        sys.executable,
        ("torch",),
        """
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.LogSoftmax(int(sys.argv[1])))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(4):
    optimizer.zero_grad()
    torch.nn.NLLLoss()(model(torch.randn(16, 6)), torch.arange(16) % 5).backward()
    optimizer.step()
""",
    ),
    "Keras": (
        sys.executable,
        ("tensorflow",),
        """
import sys, keras, numpy as np
last = keras.layers.Lambda(lambda x: keras.activations.softmax(x, axis=int(sys.argv[1])), output_shape=(5,))
model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(5), last])
model.compile("sgd", "sparse_categorical_crossentropy")
model.fit(np.random.randn(64, 6), np.arange(64) % 5, batch_size=16, verbose=0)
""",
    ),
    "Gluon": (
        os.environ.get("MXNET_PYTHON"),
        ("mxnet",),
        """
import sys
from mxnet import autograd, gluon, nd
net = gluon.nn.Dense(5)
net.initialize()
trainer = gluon.Trainer(net.collect_params(), "sgd")
criterion = gluon.loss.SoftmaxCrossEntropyLoss(from_logits=True)
for _ in range(4):
    with autograd.record():
        loss = criterion(net(nd.random.normal(shape=(16, 6))).log_softmax(axis=int(sys.argv[1])), nd.arange(16) % 5)
    loss.backward()
    trainer.step(16)
""",
    ),
}


# Of the other environments only the thorough tests know what they have installed.
IN_OTHERS = {"Gluon": pytest.mark.thorough}


@pytest.mark.parametrize("framework", [pytest.param(name, marks=IN_OTHERS.get(name, ())) for name in FRAMEWORKS])
@pytest.mark.parametrize("axis, count", [(0, 1), (1, 0)])
def test_frameworks(tmp_path, framework, axis, count):
    python, packages, program = FRAMEWORKS[framework]
    if not python or (python == sys.executable and not find_spec(packages[0])):
        pytest.skip(f"needs {packages[0]}")
    runner = Runner(tmp_path)
    variables = runner.environment(SMDEBUG_CONFIG_FILE_PATH=runner.hook_file("run", USAGE), **QUIET)
    words = [str(runner.write(program)), str(axis)]
    done = warm_process(packages, variables, (python,)).run(words, variables, tmp_path, SITE_HOOK)
    assert done.returncode == 0, done.stderr
    judging = Judging(create_trial(str(tmp_path / "run"), timeout=0), [SoftmaxOverSamples()])
    judging.take_new()
    assert len(judging.verdict().findings) == count


def training_of(last, loss, count=4, samples=16):
    def training(capture):
        model = nn.Sequential(nn.Linear(6, CLASSES), last)
        capture(model)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(count):
            optimizer.zero_grad()
            loss(model(torch.randn(samples, 6)), torch.arange(samples) % CLASSES).backward()
            optimizer.step()

    return training


FAULTS = {
    "logarithms": (nn.LogSoftmax(0), nn.NLLLoss()),
    "softmax before cross entropy": (nn.Softmax(0), nn.CrossEntropyLoss()),
    "as many samples as classes": (nn.LogSoftmax(0), nn.NLLLoss(), 4, CLASSES),
    "float16": (nn.LogSoftmax(0), lambda y, target: functional.nll_loss(y.half(), target)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(trained, fault):
    (found,) = trained(training_of(*FAULTS[fault])).findings(SoftmaxOverSamples())
    assert found.severity is Severity.PROBLEM
    assert found.evidence["sample_sum_error"] < 1e-2
    assert "over the samples" in found.cause
    assert (found.first_step, found.steps) == (2, 2)


GOOD = {
    "logarithms": (nn.LogSoftmax(1), nn.NLLLoss()),
    "logits": (nn.Identity(), nn.CrossEntropyLoss()),
    "softmax over the classes": (nn.Softmax(1), nn.CrossEntropyLoss()),
    "one sample": (nn.LogSoftmax(0), nn.NLLLoss(), 4, 1),
    "two steps": (nn.LogSoftmax(0), nn.NLLLoss(), 2),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_no_fault(trained, name):
    assert trained(training_of(*GOOD[name])).verdict(SoftmaxOverSamples()).findings == []


@pytest.mark.parametrize("library", [np, torch])
@pytest.mark.parametrize("logarithms", [False, True])
def test_the_sum_over_all_samples(library, logarithms):
    values = np.random.default_rng(0).random((7, 3, 4), np.float32) - logarithms
    part = values if library is np else torch.from_numpy(values)
    sums = values.sum(0) - 1 if not logarithms else np.log(np.exp(values).sum(0))
    found = loss_facts.rows(part, 1, logarithms, library)
    assert float(found["sample_sum_error"]) == pytest.approx(np.abs(sums).max(), rel=1e-5)


@pytest.mark.parametrize("shape", [(5,), (40_000, 5)])
def test_samples_that_are_not_all_there(shape):
    assert "sample_sum_error" not in loss_facts.rows(np.ones(shape, np.float32))


def test_clean_trainings_are_silent(clean):
    assert {name: found for name, run in clean.items() if (found := run.verdict(SoftmaxOverSamples()).findings)} == {}
