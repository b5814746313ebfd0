"""Taking one framework's folder and patch away leaves everything else working."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness.warm import warm_process

import smd_agent

PACKAGE = Path(smd_agent.__file__).parent
SITE_HOOK = PACKAGE.parent / "smd_agent.pth"
TRAINING = {
    "pytorch": (
        "torch",
        "from torch import nn\n"
        "model = nn.Linear(3, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "nn.MSELoss()(model(torch.ones(4, 3)), torch.ones(4, 2)).backward()\n"
        "optimizer.step()\n",
        "MSELoss_output_0",
    ),
    "xgboost": (
        "xgboost",
        "import numpy as np\n"
        "data = xgboost.DMatrix(np.eye(6), label=np.arange(6))\n"
        "xgboost.train({}, data, 2, evals=[(data, 'd')], verbose_eval=False)\n",
        "d-rmse",
    ),
    "tensorflow": (
        "tensorflow",
        "w = tensorflow.Variable([1.0, 2.0], name='w')\n"
        "with tensorflow.GradientTape() as tape:\n"
        "    loss = tensorflow.reduce_sum(w * w)\n"
        "w.assign_sub(tape.gradient(loss, w))\n",
        "gradients/wGrad",
    ),
    "mxnet": (
        "mxnet",
        "from mxnet import autograd, gluon, nd\n"
        "net = gluon.nn.Dense(2, in_units=3)\n"
        "net.initialize()\n"
        "with autograd.record():\n"
        "    loss = gluon.loss.L2Loss(prefix='l2loss0_')(net(nd.ones((4, 3))), nd.ones((4, 2)))\n"
        "loss.backward()\n",
        "l2loss0_output_0",
    ),
}


def without(framework, folder):
    """A copy of the package that lacks a framework."""
    copy = folder / "smd_agent"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(copy / framework)
    (copy / "patches" / f"{framework}.py").unlink()
    # In a source tree it lies beside the package, in a wheel inside.
    entry = PACKAGE.parent / "sitecustomize.py"
    if entry.exists() and not (PACKAGE / "_site").exists():
        shutil.copy(entry, folder)
    return folder


def environment_for(folder):
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("SMD", "USE_SMD"))}
    return {**kept, "PYTHONPATH": str(folder)}


def python(folder, *words):
    return subprocess.run(
        [sys.executable, *words],
        env=environment_for(folder),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


def train(folder, module, code, run):
    """Train under the folder's copy of the package, in a fork of a process that has imported the framework."""
    script = folder / "script.py"
    script.write_text(code)
    hook = {"LocalPath": str(run), "HookParameters": {"save_interval": 1, "save_all": True}}
    # The package is found in the script's folder.
    environment = environment_for(folder)
    del environment["PYTHONPATH"]
    process = warm_process((module,), environment)
    return process.run([str(script)], {**environment, "SMD_AGENT_HOOK": json.dumps(hook)}, folder, SITE_HOOK)


@pytest.mark.parametrize("gone", TRAINING)
def test_a_framework_can_be_taken_away(gone, tmp_path):
    folder = without(gone, tmp_path)
    for name, (module, training, tensor) in TRAINING.items():
        if importlib.util.find_spec(module) is None:
            continue
        run = tmp_path / f"run_{name}"
        own = f"import smd_agent\nassert smd_agent.__file__.startswith({str(folder)!r})\n"
        code = f"import {module}\n{own}{training}print('trained')"
        if name == gone or not SITE_HOOK.exists():
            result = python(folder, "-m", "smd_agent", "--out", str(run), "--every", "1", "-c", code)
        else:
            result = train(folder, module, code, run)
        assert (result.returncode, result.stdout) == (0, "trained\n"), result.stderr
        if name == gone:
            # One line, and one more where TensorFlow brings Keras along.
            missing = result.stderr.count(f"No module named 'smd_agent.patches.{gone}'")
            assert missing in ((1, 2) if gone == "tensorflow" else (1,))
            continue
        listed = python(folder, "-m", "smd_agent", "ls", "--all", str(run))
        assert tensor in listed.stdout, listed.stderr


def test_every_framework_has_its_room():
    from smd_agent.patches import FRAMEWORKS

    rooms = {module: patch.rpartition(".")[2] for module, patch in FRAMEWORKS.items()}
    # Keras is TensorFlow's guest: it is imported by TensorFlow, or brings it along.
    guests = {name for name in rooms if name not in {module for module, *_ in TRAINING.values()}}
    assert guests <= {"keras", "tf_keras"}
    assert {module: room for module, room in rooms.items() if module not in guests} == {
        module: name for name, (module, *_) in TRAINING.items()
    }
