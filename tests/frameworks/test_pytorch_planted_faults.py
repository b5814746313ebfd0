"""Faults that make a loss or gradients not finite, launched without any option: ``replay`` names what made them so."""

from __future__ import annotations

import json
import re

import pytest

pytest.importorskip("torch")

import torch
from harness.bundles import bundles_in
from harness.compare import sorted_lines
from harness.runner import SUBJECTS, TORCHRUN

SCRIPT = SUBJECTS / "pytorch/planted_not_finite.py"
AT = 3
AT_ZERO = r"aten\.log in {} made -inf of values from 0 to [\d.]+, of which aten\.mul made NaN \(.*# HERE\); row \d+ of"

# What the line says of each fault.
NAMED = {
    "row": r"the batch that the model was given has NaN in row 7: args\[0\]$",
    "log": AT_ZERO.format("Log"),
    "sqrt": r"aten\.div in SqrtBackward0 in Sqrt made inf of .* from 0 to 0,.*# HERE\); all 32 rows",
    "where": r"aten\.div in SqrtBackward0 in Where made NaN of .*# HERE\)",
    "half": r"aten\.pow in Half made inf of .*# HERE\)",
    "division": r"aten\.div in what computes the loss made inf of .* from 0 to 0 \(.*y\.float\(\)\.sum\(\) \* 0\)\)$",
    "mask": r"aten\._softmax in Mask made NaN of .*# HERE\); row 3 of the batch$",
    "rate": r"aten\.addmm in layers\.2 made inf of values .*e\+16",
    "loaded": r"the weights had NaN: layers\.1\.weight$",
    "compiled": f"^without the compiler, {AT_ZERO.format('Log')}",
    "checkpointed": AT_ZERO.format("Checkpointed"),
    "checkpointed sqrt": r"aten\.div in SqrtBackward0 in CheckpointedSqrt made inf .*# HERE\)",
    "normalisation": r"aten\.div in Normalisation made inf of .*# HERE\); all 32 rows of the batch$",
}


def recorded(runner, *words):
    """Run a program as it is launched by default; the run's folder, once it has done what it does alone."""
    plain = runner.plain(*words)
    agent = runner.by_launcher("--out", "run", *words)
    assert (agent.returncode, sorted_lines(agent.stdout)) == (0, sorted_lines(plain.stdout)), agent.stderr
    return runner.folder / "run"


def replayed(runner, run, *words):
    done = runner.by_launcher("replay", run, "--json", *words)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.cold
@pytest.mark.parametrize(
    "fault, seed", [*((fault, "0") for fault in NAMED), *((fault, "1") for fault in ("log", "sqrt", "half"))]
)
def test_what_was_planted_is_named(runner, fault, seed):
    run = recorded(runner, SCRIPT, fault, seed)
    # What the first try finds out is known for the other seed.
    code, found = replayed(runner, run, *(["--from-start"] if seed == "1" else []))
    assert found["step"] == (AT + 1 if fault == "rate" else AT)
    assert found["differs"] == ""
    assert code == 0
    assert re.search(NAMED[fault], found["maker"]), found["maker"]


@pytest.mark.cold
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_nobody_is_blamed_for_what_another_rank_has_made(runner):
    run = recorded(runner, *TORCHRUN, SCRIPT, "one rank", "0")
    assert len(bundles_in(run)) == 1
    code, found = replayed(runner, run)
    assert (code, found["broken"], found["maker"]) == (1, [], "")
    assert found["differs"]
