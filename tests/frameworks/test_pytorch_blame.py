"""Faults that make a loss or gradients not finite: who is named, and that the run goes on as without the agent."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("torch")

import torch
from harness.compare import assert_untouched, run_both, said, sorted_lines
from harness.runner import SUBJECTS, TORCHRUN
from torch import nn

import smd_agent.pytorch as smd

SCRIPT = SUBJECTS / "pytorch/planted_not_finite.py"
CONFIG = {"HookParameters": {"save_interval": 100, "blame": True}}
IN_LOSS = "in what computes the loss after the model"
AT_ZERO = r"aten\.log in {} made -inf of values from 0 to [\d.]+, of which aten\.mul made NaN \(.*# HERE\); row"

# What the line says of each fault.
NAMED = {
    "row": r"the batch that Net was given has NaN in row 7$",
    "log": AT_ZERO.format("Log"),
    "sqrt": r"aten\.div in SqrtBackward0 in Sqrt made inf of .* from 0 to 0,.*# HERE\)",
    "where": r"aten\.div in SqrtBackward0 in Where made NaN of .*# HERE\)",
    "half": r"aten\.pow in Half made inf of .*# HERE\)",
    "division": rf"div {IN_LOSS} made inf of values from 0 to 0$",
    "log of loss": rf"log {IN_LOSS} made -inf of values from 0 to 0$",
    "sqrt of loss": rf"made by the gradient of sqrt {IN_LOSS}",
    "labels": rf"sub {IN_LOSS} was given NaN by what has no gradient.*; row 9$",
    "all ignored": rf"nll_loss {IN_LOSS} made inf",
    "mask": r"aten\._softmax in Mask made NaN of .*# HERE\); row 3 of the batch$",
    "normalisation": r"aten\.div in Normalisation made inf of .*# HERE\); all 32 rows of the batch$",
    "rate": r"aten\.addmm in layers\.2 made inf of values .*e\+16",
    "loaded": r"Net_layers\.1\.weight had values that are not finite before",
    "compiled": f"without the compiler, {AT_ZERO.format('Log')}",
    "compiled sqrt": r"aten\.div in SqrtBackward0 in Sqrt made inf .*# HERE\)",
    "checkpointed": AT_ZERO.format("Checkpointed"),
    "checkpointed sqrt": r"aten\.div in SqrtBackward0 in CheckpointedSqrt made inf .*# HERE\)",
    "autocast": AT_ZERO.format("Log"),
    "counting": AT_ZERO.format("Counting"),
    "hooked": AT_ZERO.format("Log"),
    # What cannot be called again unnoticed is not: the graph that is there names the operation.
    "printing": r"log made -inf of values from 0 to .*not run again: its code calls print",
    "printing hook": r"log made -inf of values from 0 to .*not run again: its code calls print",
    "drawing": r"log made -inf of values from 0 to .*not run again: its code calls random",
    "drawing numpy": r"log made -inf of values from 0 to .*not run again: its code uses a RandomState",
    "drawing of its own": r"log made -inf of values from 0 to .*not run again",
    "environment": r"log made -inf of values from 0 to .*not run again",
    "branching": r"log made -inf of values .*Branching, run again, has other values than in the step",
}


def lines_of(result):
    return [line for line in said(result) if re.search(r"(loss is|gradients are) not finite", line)]


@pytest.mark.parametrize("seed", ["0", "1"])
@pytest.mark.parametrize("fault", NAMED)
def test_a_planted_fault_is_named_and_nothing_else_is_different(runner, fault, seed):
    both = run_both(runner, SCRIPT, fault, seed, config=CONFIG, strict=True)
    assert_untouched(both)
    (line,) = lines_of(both.agent)
    assert re.search(NAMED[fault], line), line
    name = "recorder/blame"
    (step,) = both.trial.tensor(name).steps()
    assert f"at step {step}: " in line
    assert line.endswith(str(both.trial.tensor(name).value(step).item()).partition(": ")[2])


@pytest.mark.parametrize("fault", ["clean", "evaluated"])
def test_nothing_is_said_of_a_clean_training(runner, fault):
    both = run_both(runner, SCRIPT, fault if fault == "clean" else "nothing", "0", config=CONFIG, strict=True)
    assert_untouched(both)
    assert not lines_of(both.agent)


@pytest.mark.cold
@pytest.mark.parametrize("seed", ["0", "1"])
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_a_fault_in_one_rank_is_named_there(runner, seed):
    plain = runner.plain(*TORCHRUN, str(SCRIPT), "one rank", seed)
    config = runner.hook_file(
        "run", {"HookParameters": {"save_interval": 100, "include_workers": "all", "blame": True}}
    )
    agent = runner.by_launcher("--config", config, *TORCHRUN, str(SCRIPT), "one rank", seed)
    assert (agent.returncode, sorted_lines(agent.stdout)) == (0, sorted_lines(plain.stdout)), agent.stderr
    named = [line for line in lines_of(agent) if "aten.log" in line]
    assert len(named) == 1
    assert re.search(AT_ZERO.format("Log"), named[0])
    (other,) = [line for line in lines_of(agent) if "aten.log" not in line]
    assert "on another rank" in other


def hooked(out, model):
    hook = smd.Hook(out, save_config=smd.SaveConfig(save_interval=100))
    hook.name_culprits()
    hook.register_module(model)
    hook.set_mode(smd.modes.TRAIN)
    return hook


def test_a_call_is_kept_until_its_update(out):
    model = nn.Linear(4, 2)
    hook = hooked(out, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(3, 4)).sum()
        assert hook.models[0].calls.kept is not None
        loss.backward()
        optimizer.step()
        assert hook.models[0].calls.kept is None
    model.eval()
    with torch.no_grad():
        model(torch.ones(3, 4))
    assert hook.models[0].calls.kept is None


def test_an_overflow_that_a_scaler_skips_is_no_finding(out, capsys):
    model = nn.Linear(4, 2)
    hooked(out, model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**126)
    for _ in range(5):
        optimizer.zero_grad()
        scaler.scale(model(torch.full((3, 4), 100.0)).square().sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert "not finite" not in capsys.readouterr().err
