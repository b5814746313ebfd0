"""Trainings that are killed and started again: one run, in which no step is missing, doubled or of the wrong start."""

from __future__ import annotations

import json
import os
import random
import signal

import pytest
from harness import beside
from harness.runner import TORCHRUN
from harness.slow_disk import SLOW_DISK

pytest.importorskip("torch")

from smd_agent import create_trial
from smd_agent.core.modes import ModeKeys

OLD_PYTHON = os.environ.get("SMDEBUG_PYTHON", "")
WARM = ("torch", "torch._dynamo")
EPOCHS, BATCHES, EVALUATIONS = 5, 8, 3
PER_EPOCH = BATCHES + EVALUATIONS

# Its own checkpoint is written at the end of an epoch, under another name first. With KILL it ends in that step.
SCRIPT = """
import os, signal, sys, torch
from torch import nn
folder, kill = sys.argv[1], int(sys.argv[2])
path, made = os.path.join(folder, "last.pt"), 0
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
optimizer, loss_fn, first = torch.optim.Adam(model.parameters()), nn.CrossEntropyLoss(), 0
if os.path.exists(path):
    state = torch.load(path)
    model.load_state_dict(state["model"]), optimizer.load_state_dict(state["optimizer"])
    first = state["epoch"] + 1
def batch(number):
    generator = torch.Generator().manual_seed(number)
    return torch.randn(8, 4, generator=generator), torch.randint(0, 2, (8,), generator=generator)
for epoch in range(first, EPOCHS):
    model.train()
    for number in range(BATCHES):
        x, y = batch(100 * epoch + number)
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        if epoch * PER_EPOCH + number == kill:
            os.kill(os.getpid(), signal.SIGKILL)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for number in range(EVALUATIONS):
            x, y = batch(100 * epoch + 50 + number)
            loss_fn(model(x), y)
            if epoch * PER_EPOCH + BATCHES + number == kill:
                os.kill(os.getpid(), signal.SIGKILL)
    os.makedirs(folder, exist_ok=True)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path + ".new")
    os.replace(path + ".new", path)
torch.save(model.state_dict(), "weights.pt")
""".replace("PER_EPOCH", str(PER_EPOCH)).replace("EPOCHS", str(EPOCHS))
SCRIPT = SCRIPT.replace("BATCHES", str(BATCHES)).replace("EVALUATIONS", str(EVALUATIONS))
CONFIG = {
    "HookParameters": {"save_interval": 1},
    "CollectionConfigurations": [{"CollectionName": "weights"}, {"CollectionName": "losses"}],
}


def told(folder):
    """What a run holds: its steps by mode, and each value by name, mode and step."""
    trial = create_trial(str(folder))
    modes = [mode for mode in trial.modes() if mode is not ModeKeys.GLOBAL]
    steps = {mode.name: trial.steps(mode=mode) for mode in modes}
    values = {
        (name, mode.name, step): trial.tensor(name).value(step, mode=mode).tolist()
        for name in trial.tensor_names()
        for mode in modes
        for step in trial.tensor(name).steps(mode)
    }
    return trial.steps(), steps, values


@pytest.fixture
def spot(runner, tmp_path):
    """Starts a script once, whose run goes to ``run``, with the folder of its checkpoints named as in SageMaker."""
    named = tmp_path / "checkpointconfig.json"
    named.write_text(json.dumps({"LocalPath": str(tmp_path / "checkpoints/inner"), "S3Uri": "s3://bucket/checkpoints"}))

    def start(script, *args, config=CONFIG, **variables):
        return runner.by_variable(
            script, *map(str, args), config=config, CHECKPOINT_CONFIG_FILE_PATH=str(named), **variables
        )

    return start


def test_a_pytorch_training_that_is_killed_goes_on_in_its_run(runner, spot, tmp_path):
    script, checkpoints = runner.write(SCRIPT), tmp_path / "checkpoints/inner"
    killed = sorted(random.sample(range(PER_EPOCH, EPOCHS * PER_EPOCH), 2))
    print("killed in the steps", killed)
    before = None
    for kill in killed:
        result = spot(script, checkpoints, kill)
        assert result.returncode == -signal.SIGKILL
        epochs = kill // PER_EPOCH
        last = epochs * PER_EPOCH - 1
        state = json.loads((checkpoints / "metadata.json").read_text())[-1]
        assert state["latest-global-step-seen"] == state["latest-global-step-saved"] == last
        steps = {"TRAIN": epochs * BATCHES - 1, "EVAL": epochs * EVALUATIONS - 1, "GLOBAL": last}
        assert state["latest-mode-step"] == steps
        assert ("go on after" in result.stderr) == (before is not None)
        before = last
    result = spot(script, checkpoints, -1)
    assert result.returncode == 0, result.stderr
    assert f"steps go on after {before}, as {checkpoints}/metadata.json says" in result.stderr
    assert sorted(path.name for path in tmp_path.glob("run*")) == ["run", "run.json"]

    weights = (tmp_path / "weights.pt").read_bytes()
    result = runner.by_variable(script, str(tmp_path / "other"), "-1", name="whole", config=CONFIG)
    assert (result.returncode, (tmp_path / "other/metadata.json").exists()) == (0, False)
    assert (tmp_path / "weights.pt").read_bytes() == weights

    steps, by_mode, values = told(tmp_path / "run")
    assert steps == [*range(EPOCHS * PER_EPOCH)]
    assert by_mode == {"TRAIN": [*range(EPOCHS * BATCHES)], "EVAL": [*range(EPOCHS * EVALUATIONS)]}
    assert (steps, by_mode, values) == told(tmp_path / "whole")
    if OLD_PYTHON:
        theirs, ours = beside.dumps(OLD_PYTHON, tmp_path / "run")
        assert theirs["steps"] == ours["steps"]
        assert theirs["tensors"].keys() == ours["tensors"].keys()
        assert [*beside.differences(theirs, ours, lambda place, *_: "computed" in place)] == []


RANKS = """
import os, signal, sys, torch, torch.distributed as dist
from torch import nn
torch.set_num_threads(1)
dist.init_process_group("gloo")
path, kill = os.path.join(sys.argv[1], "last.pt"), int(sys.argv[2])
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
optimizer, first = torch.optim.SGD(model.parameters(), lr=0.1), 0
if os.path.exists(path):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    first = state["step"] + 1
for step in range(first, 14):
    optimizer.zero_grad()
    nn.CrossEntropyLoss()(model(torch.full((8, 4), 1.0 * step)), torch.zeros(8, dtype=int)).backward()
    if step == kill:
        dist.barrier()
        os.kill(os.getpid(), signal.SIGKILL)
    optimizer.step()
    if step % 4 == 3:
        if dist.get_rank() == 0:
            os.makedirs(sys.argv[1], exist_ok=True)
            torch.save({"model": model.state_dict(), "step": step}, path)
        dist.barrier()
"""


# The state of a checkpoint is written slowly, too.
SLOW_STATE = (
    SLOW_DISK.replace("0.1", "0.2")
    + """
from smd_agent.storage import state_keeper
def replace(*args, usual=state_keeper.replace_file):
    time.sleep(1.5)
    usual(*args)
state_keeper.replace_file = replace
"""
)


@pytest.mark.parametrize("slow", [SLOW_DISK, SLOW_STATE], ids=["steps", "state"])
def test_no_step_before_a_checkpoint_is_lost_on_a_slow_disk(slow, runner, spot, tmp_path):
    script, checkpoints = runner.write(slow + SCRIPT), tmp_path / "checkpoints/inner"
    # In the step that follows the checkpoint.
    assert spot(script, checkpoints, PER_EPOCH).returncode == -signal.SIGKILL
    assert create_trial(str(tmp_path / "run")).steps() == [*range(PER_EPOCH)]


def test_each_worker_has_its_steps_on_disk_before_it_goes_on_after_a_checkpoint(runner, tmp_path):
    script, checkpoints = runner.write(SLOW_DISK + RANKS), tmp_path / "checkpoints"
    (tmp_path / "checkpointconfig.json").write_text(json.dumps({"LocalPath": str(checkpoints)}))
    config = {**CONFIG, "HookParameters": {"save_interval": 1, "include_workers": "all"}}
    file = runner.hook_file("run", config)
    for kill, code in ((8, 1), (-1, 0)):
        result = runner.by_launcher(
            "--config",
            file,
            *TORCHRUN,
            script,
            checkpoints,
            kill,
            CHECKPOINT_CONFIG_FILE_PATH=str(tmp_path / "checkpointconfig.json"),
        )
        assert result.returncode == code, result.stderr
    trial = create_trial(str(tmp_path / "run"))
    loss = trial.tensor("CrossEntropyLoss_output_0")
    by_step = {step: loss.workers(step, mode=ModeKeys.TRAIN) for step in trial.steps()}
    assert by_step == {step: ["worker_0", "worker_1"] for step in range(14)}


ONE_STEP = """
import torch
model, x = torch.nn.Linear(2, 1), torch.ones(3, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
model(x).sum().backward(), optimizer.step()
"""


def test_a_named_rank_parts_the_workers_each_of_which_has_a_run(runner, tmp_path):
    script = runner.write(ONE_STEP)
    config = {**CONFIG, "LocalPath": str(tmp_path / "of-{rank}"), "HookParameters": {"include_workers": "all"}}
    for rank in (0, 1):
        result = runner.by_variable(script, config=config, RANK=str(rank), WORLD_SIZE="2")
        assert result.returncode == 0, result.stderr
    for rank in (0, 1):
        trial = create_trial(str(tmp_path / f"of-{rank}"))
        assert (trial.steps(), trial.workers(), trial.num_workers) == ([0], [f"worker_{rank}"], 1)
