"""Files for TensorBoard of trainings with PyTorch, as TensorBoard's own reader reads them."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest
from harness.boards import board_python, check_board, read_board

from smd_agent import create_trial
from smd_agent.cli import main

pytest.importorskip("torch")

SCRIPT = """
import torch, torch.nn as nn
torch.manual_seed(0)
torch.set_num_threads(1)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(20, 50), nn.Linear(50, 3)
        self.scale = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return self.last(torch.relu(self.first(x))) * self.scale
model, loss_of = Net(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(STEPS):
    model.train()
    optimizer.zero_grad()
    loss_of(model(torch.randn(32, 20)), torch.randint(3, (32,))).backward()
    optimizer.step()
    if step % 4 == 3:
        model.eval()
        with torch.no_grad():
            loss_of(model(torch.randn(32, 20)), torch.randint(3, (32,)))
"""
TWO = ("TRAIN", "EVAL")


@pytest.fixture(autouse=True)
def reader():
    return board_python()


def trained(runner, *options, steps=12, script=SCRIPT):
    path = runner.write(script.replace("STEPS", str(steps)))
    done = runner.by_launcher("--out", "run", "--tensorboard", "board", *options, path)
    assert done.returncode == 0, done.stderr
    return runner.folder / "run", runner.folder / "board", done.stderr


def test_what_the_launcher_saves(runner):
    run, board, said = trained(runner, "--every", "2")
    assert f"writing TensorBoard's files to {board}" in said
    found = check_board(run, board)
    assert found.keys() == set(TWO)
    assert found["TRAIN"]["histograms"] >= 9
    values = read_board(board)
    loss = values["TRAIN"]["scalars"]["CrossEntropyLoss_output_0"]
    trial = create_trial(str(run))
    assert [step for step, _ in loss] == [step for step in trial.steps() if trial.mode(step).name == "TRAIN"]
    assert "weights/Net_first.weight/std" in values["TRAIN"]["scalars"]
    assert "gradients/gradient/Net_last.weight" in values["TRAIN"]["histograms"]
    assert values["EVAL"]["histograms"].keys() < values["TRAIN"]["histograms"].keys()


def test_the_series_has_every_step(runner):
    _, board, _ = trained(runner, "--every", "8", steps=30)
    losses = read_board(board)["TRAIN"]["scalars"]["series/loss"]
    assert len(losses) == 30
    assert len({step for step, _ in losses}) == 30


def test_whole_tensors(runner):
    run, board, _ = trained(runner, "--every", "3", "--raw")
    assert check_board(run, board)["TRAIN"]["histograms"] >= 9


@pytest.mark.parametrize("form", [("--raw",), ("--reductions", "statistics,p5,histogram"), ()], ids=str)
def test_a_saved_run_becomes_the_same(runner, capsys, form):
    run, board, _ = trained(runner, "--every", "4", *form)
    out = runner.folder / "out"
    assert main(["export", str(run), "--tensorboard", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}; to see it: tensorboard --logdir {out}\n"
    check_board(run, out, pictures=len(form) > 1)
    live, later = read_board(board), read_board(out)
    for name in TWO:
        assert live[name]["scalars"] == later[name]["scalars"]
        for tag, values in later[name]["histograms"].items():
            ours = live[name]["histograms"][tag]
            if form == ("--reductions", "statistics,p5,histogram"):
                # Powers of two instead of their eighths; the rest comes from the reductions beside them.
                assert [one[0] for one in values] == [one[0] for one in ours]
                assert all(a[2:5] == pytest.approx(b[2:5], rel=1e-6) for a, b in zip(values, ours, strict=True))
            else:
                assert values == ours


def test_values_that_are_not_finite_are_counted_beside_a_histogram_of_the_others(runner):
    script = SCRIPT.replace(
        "    model.train()\n",
        "    model.train()\n"
        "    if step in (2, 3):\n"
        "        with torch.no_grad():\n"
        "            model.first.weight[0, :5] = float('nan') if step == 2 else 0.0\n"
        "            model.last.weight.fill_(float('inf'))\n",
    )
    _, board, _ = trained(runner, "--every", "1", "--save", "weights", steps=5, script=script)
    found = read_board(board)["TRAIN"]
    counts = dict(found["scalars"]["weights/Net_first.weight/nonfinite_count"])
    assert min(counts) == 2
    assert counts[2] >= 5
    sizes = {one[0]: one[4] for one in found["histograms"]["weights/Net_first.weight"]}
    assert all(sizes.get(step, 0) + counts.get(step, 0) == 1000 for step in (0, 1, 2))
    assert 2 not in {one[0] for one in found["histograms"]["weights/Net_last.weight"]}
    assert dict(found["scalars"]["weights/Net_last.weight/nonfinite_count"])[2] == 150


def test_collections_without_histograms(runner):
    config = {
        "HookParameters": {"save_interval": 2, "export_tensorboard": "true"},
        "CollectionConfigurations": [
            {"CollectionName": "weights", "CollectionParameters": {"save_histogram": "false"}},
            {"CollectionName": "gradients"},
        ],
    }
    done = runner.by_variable(runner.write(SCRIPT.replace("STEPS", "6")), config=config)
    assert done.returncode == 0, done.stderr
    run = runner.folder / "run"
    check_board(run, run / "tensorboard")
    tags = read_board(run / "tensorboard")["TRAIN"]["histograms"]
    assert {tag.partition("/")[0] for tag in tags} == {"gradients"}


def test_a_script_with_a_hook_of_its_own(runner):
    script = (
        "import smd_agent.pytorch as smd\n"
        "hook = smd.Hook('run', export_tensorboard=True, save_config=smd.SaveConfig(save_interval=2))\n"
        + SCRIPT.replace("STEPS", "4").replace("optimizer = ", "hook.register_module(model)\noptimizer = ")
        + "    hook.save_scalar('rate', step / 2, sm_metric=True)\n"
        + "print(hook.tensorboard_dir)\n"
    )
    done = runner.plain(runner.write(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(runner.folder / "run" / "tensorboard")
    check_board(runner.folder / "run", runner.folder / "run" / "tensorboard")
    found = [
        board["scalars"].get("scalar/rate", []) for board in read_board(runner.folder / "run/tensorboard").values()
    ]
    assert sorted(value for values in found for _, value in values) == [0.0, 0.5, 1.0, 1.5]


def test_after_a_kill_all_steps_but_the_last_are_there(runner):
    script = runner.write(SCRIPT.replace("STEPS", "100000"))
    process = runner.start(script, config={"HookParameters": {"save_interval": 1, "export_tensorboard": True}})
    run = runner.folder / "run"
    try:
        deadline = time.monotonic() + 120
        while len(list(run.glob("index/*/*.json"))) < 20:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    boards = read_board(run / "tensorboard")
    trial = create_trial(str(run), timeout=0)
    trial.take_as_it_is()
    listed = trial.steps(show_incomplete_steps=True)
    shown = sorted(step for board in boards.values() for step, _ in board["scalars"]["CrossEntropyLoss_output_0"])
    assert set(listed[:-1]) <= set(shown)
    assert len(listed) >= 20


def test_the_weights_are_those_of_a_plain_run(runner):
    script = SCRIPT.replace("STEPS", "6") + "print(sum(float(p.double().sum()) for p in model.parameters()).hex())\n"
    path = runner.write(script)
    plain = runner.plain(path)
    seen = runner.by_launcher("--out", "run", "--tensorboard", "board", "--every", "1", path)
    assert (plain.returncode, plain.stdout) == (seen.returncode, seen.stdout)
    assert sys.float_info.max > float.fromhex(plain.stdout.strip())
