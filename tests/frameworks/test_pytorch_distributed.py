"""Several processes of one run: the workers of torchrun, each under its rank, and copies made by fork."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import smd_agent.pytorch as smd
from smd_agent.analysis.trial import create_trial

SCRIPT = """
import gc, torch, torch.distributed as dist
from torch import nn
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(dist.get_rank())
for i in range(4):
    optimizer.zero_grad()
    nn.CrossEntropyLoss()(model(torch.randn(8, 5)), torch.randint(0, 3, (8,))).backward()
    optimizer.step()
# A process group that is still referred to when the interpreter ends aborts the process in one run of twenty.
del model, optimizer
gc.collect()
dist.barrier()
dist.destroy_process_group()
"""

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")


@pytest.mark.parametrize("workers", ["one", "all"])
def test_workers_under_torchrun(runner, tmp_path, workers):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    config = {
        "LocalPath": str(tmp_path / "run"),
        "HookParameters": {"save_interval": 2, "include_workers": workers},
        "CollectionConfigurations": [{"CollectionName": "gradients"}],
    }
    (tmp_path / "hook.json").write_text(json.dumps(config))
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    result = runner.by_launcher("--config", tmp_path / "hook.json", *torchrun, script)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("smd_agent: ") == (2 if workers == "one" else 4)
    trial = create_trial(str(tmp_path / "run"))
    assert trial.workers() == ["worker_0", "worker_1"][: 1 if workers == "one" else 2]
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 2]
    gradient = trial.tensor("gradient/Sequential_0.weight")
    losses = trial.tensor("CrossEntropyLoss_output_0")
    if workers == "all":
        # Reduced over the ranks, so equal on both; the losses are each rank's own.
        first, second = (gradient.value(2, worker=worker) for worker in trial.workers())
        np.testing.assert_array_equal(first, second)
        assert losses.value(2, worker="worker_0") != losses.value(2, worker="worker_1")


FORKING = """
import os, sys, torch
from torch import nn
# With more threads torch itself hangs in a forked child.
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(5, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(steps):
    for i in range(steps):
        optimizer.zero_grad()
        nn.CrossEntropyLoss()(model(torch.randn(8, 5)), torch.randint(0, 3, (8,))).backward()
        optimizer.step()
train(3)
child = os.fork()
if child == 0:
    train(2)
    sys.exit(0)
os.waitpid(child, 0)
train(3)
"""


def test_a_forked_copy_of_a_training_process_leaves_its_run_alone(runner, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(FORKING)
    result = runner.by_variable(script, config={"HookParameters": {"save_interval": 1}})
    assert result.returncode == 0, result.stderr
    assert create_trial(str(tmp_path / "run")).steps() == [0, 1, 2, 3, 4, 5]
    assert result.stderr.count("smd_agent: ") == 2
