"""A script in a fork of a process that has imported its framework does what it does in an interpreter of its own."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time

import pytest
from harness.compare import assert_same_values, saved_values
from harness.warm import WarmProcess

from smd_agent.analysis.trial import create_trial

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
SCRIPTS = {
    "torch": """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = nn.MSELoss()(model(torch.randn(4, 3)), torch.ones(4, 2))
    loss.backward()
    optimizer.step()
    print(loss.item())
""",
    "xgboost": """
from xgboost import DMatrix, train
import numpy as np
data = DMatrix(np.random.default_rng(0).normal(size=(40, 3)), label=np.arange(40))
train({"nthread": 1}, data, 3, evals=[(data, "d")])
""",
    "mxnet": """
import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn
mx.random.seed(1)
net = nn.HybridSequential(prefix="net_")
with net.name_scope():
    net.add(nn.Dense(4, activation="relu"), nn.Dropout(0.5), nn.Dense(2))
net.initialize(mx.init.Xavier())
net.hybridize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
for step in range(3):
    with autograd.record():
        loss = gluon.loss.L2Loss(prefix="l2_")(net(nd.random.uniform(shape=(4, 3))), nd.ones((4, 2)))
    loss.backward()
    trainer.step(4)
    print(loss.asnumpy().tolist())
""",
    "tensorflow": """
import numpy as np
import tensorflow as tf
w = tf.Variable([1.0, 2.0], name="w")
@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss
print([float(step()) for _ in range(3)])
tf.keras.utils.set_random_seed(1)
model = tf.keras.Sequential([tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2, name="d")])
model.compile("sgd", "mse")
log = model.fit(np.ones((8, 3), "f"), np.zeros((8, 2), "f"), batch_size=4, epochs=2, verbose=0)
print(log.history)
""",
}
END = """
import os, sys
print(__name__, __file__, sys.argv, os.getcwd())
1 / 0
"""
ENDS = """
import atexit, sys, threading
class Last:
    def __del__(self):
        print("gone", NAME)
NAME, last = "here", Last()
last.itself = last
atexit.register(print, "at exit")
threading.Timer(0.1, print, ["a thread"]).start()
sys.exit("a last word")
"""
WARM = {
    "torch": ("torch", "torch._dynamo"),
    "xgboost": ("xgboost", "sklearn"),
    "mxnet": ("mxnet",),
    "tensorflow": ("tensorflow",),
}
# Folders of the runs, and how long and how much they took, are their own.
OWN = re.compile(r"/\S*/(cold|warm)\b|[\d.]+ [kM]?B\b|[\d.]+% of the process")


@pytest.fixture(params=SCRIPTS)
def both(request, module_runner):
    """Run a script in both ways, with the agent: it ends by an error."""
    framework = request.param
    if importlib.util.find_spec(framework) is None:
        pytest.skip(f"there is no {framework}")
    runner = module_runner(framework)
    script = runner.write(SCRIPTS[framework] + END)
    config = {"HookParameters": {"save_interval": 1, "save_all": True}}
    if framework == "xgboost":
        config = {**config, "CollectionConfigurations": [{"CollectionName": name} for name in ("metrics", "trees")]}
    found = {}
    for name, modules in (("cold", ()), ("warm", WARM[framework])):
        runner.warm = modules
        found[name] = runner.by_variable(script, "--an", "argument", name=name, config=config, **QUIET)
    return found, {name: saved_values(create_trial(str(runner.folder / name))) for name in found}


def test_a_fork_of_a_warm_process_saves_prints_and_ends_as_an_interpreter_of_its_own(both):
    found, saved = both
    assert found["warm"].returncode == found["cold"].returncode == 1
    assert found["warm"].stdout == found["cold"].stdout
    lines = {name: OWN.sub("", result.stderr).splitlines() for name, result in found.items()}
    # TensorFlow says something when it is imported.
    lines["cold"] = [line for line in lines["cold"] if not re.match("WARNING: All log|I0000", line)]
    assert "ZeroDivisionError: division by zero" in lines["cold"]
    assert lines["warm"] == lines["cold"]
    assert len(saved["cold"]) > 3
    assert_same_values(saved["warm"], saved["cold"])


def test_threads_functions_and_objects_end_as_in_an_interpreter_of_its_own(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(ENDS)
    process = WarmProcess((sys.executable,), ("json",), dict(os.environ))
    result = process.run([str(script)], dict(os.environ), tmp_path)
    cold = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert result.stdout == cold.stdout == "a thread\nat exit\ngone here\n"
    assert result.stderr == cold.stderr == "a last word\n"
    assert result.returncode == cold.returncode == 1


def test_a_script_that_is_killed_is_seen_to_be(module_runner):
    runner = module_runner("killed")
    runner.warm = ("json",)
    script = runner.write("import os, signal\nprint('here', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n")
    for _ in range(2):
        result = runner.plain(script)
        assert (result.returncode, result.stdout) == (-9, "here\n")


def test_answers_that_come_together_are_told_apart(tmp_path, monkeypatch):
    process = WarmProcess((sys.executable,), (), dict(os.environ))
    answer = process._answer

    def late():
        time.sleep(0.2)
        return answer()

    # As on a loaded machine: the script has ended before its number is read.
    monkeypatch.setattr(process, "_answer", late)
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit(3)")
    for _ in range(3):
        end = time.monotonic() + 0.5
        result = process.run(
            [str(script)], dict(os.environ), tmp_path, killed_when=lambda end=end: time.monotonic() > end
        )
        assert result.returncode == 3
