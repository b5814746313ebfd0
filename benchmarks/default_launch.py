"""What a whole run costs under the launcher with nothing asked for, beside the same script alone.

``python -m smd_agent script.py`` saves statistics of everything at steps 0, 1, 2, 3, 5, 10, 20, 50 and every 100th. A
run of the CNN is made as it is, from the start of the interpreter to its end. Of a model of GPT-2 small's size a short
one is made, and 1,000 steps are reckoned from it: the steps that are not saved, the saved ones, and the rest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

from benchmarks.family import ROOT, clean_environment
from benchmarks.table import Row

SUBJECT = ROOT / "benchmarks" / "default_launch_subject.py"
STEPS = 1000
SAVED = (0, 1, 2, 3, 5, 10, 20, 50, *range(100, STEPS, 100))
# Of a step that is being saved a part is written while the next ones run.
AFTER = 2
LARGE_STEPS = 40
TARGET = 1.02


@dataclass(frozen=True)
class Run:
    """One run: the seconds from the start of its interpreter to its end, and to the end of each step."""

    whole: float
    steps: list[float]


Pair = tuple[Run, Run]


def rows() -> Iterator[Row]:
    """Yield the whole run of each model, and of the large one a step that is saved."""
    with tempfile.TemporaryDirectory() as folder:
        taken = [pair("cnn", STEPS, Path(folder)) for _ in range(6)]
    plain, ours = (median(runs[which].whole for runs in taken) for which in (0, 1))
    ratio = median(runs[1].whole / runs[0].whole for runs in taken)
    floor = f"the script alone, {plain:.1f} s"
    yield Row(f"default launch, small CNN, {STEPS:,} steps", floor, f"{ours:.1f} s", ratio, TARGET)
    begun = [median(runs[which].steps[0] for runs in taken) for which in (0, 1)]
    floor = f"the script alone, {begun[0]:.2f} s"
    yield Row("– to the end of the first step", floor, f"{begun[1]:.2f} s", begun[1] / begun[0])
    with tempfile.TemporaryDirectory() as folder:
        taken = [pair("gpt2", LARGE_STEPS, Path(folder)) for _ in range(2)]
    wholes = [mean(reckoned(runs[which].steps) for runs in taken) for which in (0, 1)]
    what = f"default launch, GPT-2 small's size, {STEPS:,} steps, reckoned from {LARGE_STEPS}"
    yield Row(what, f"the script alone, {wholes[0]:.0f} s", f"{wholes[1]:.0f} s", wholes[1] / wholes[0], TARGET)
    unsaved, saved = (mean(lengths(ours.steps)[which] for _, ours in taken) for which in (0, 1))
    yield Row("– a saved step", f"one that is not, {unsaved:.2f} s", f"{saved:.2f} s", saved / unsaved)


def pair(name: str, steps: int, folder: Path) -> Pair:
    """Run the script alone and under the launcher, one after the other; return both in this order."""
    found = {}
    for launched in sorted((False, True), key=lambda _: os.urandom(1)):
        times = folder / "times.json"
        words = [sys.executable, "-W", "ignore"]
        if launched:
            words += ["-m", "smd_agent", "--out", tempfile.mkdtemp(dir=folder)]
        start = time.time()
        environment = {**clean_environment(), "BENCHMARK_START": str(start)}
        command = [*words, str(SUBJECT), name, str(steps), str(times)]
        subprocess.run(command, env=environment, cwd=folder, check=True, stderr=subprocess.DEVNULL)
        found[launched] = Run(time.time() - start, json.loads(times.read_text()))
    return found[False], found[True]


def reckoned(ends: Sequence[float]) -> float:
    """Return what a run of all steps takes, in seconds, from the ends of the steps of a short one."""
    unsaved, saved = lengths(ends)
    return ends[0] + unsaved * (STEPS - len(SAVED)) + saved * (len(SAVED) - 1)


def lengths(ends: Sequence[float]) -> tuple[float, float]:
    """Return what a step takes that is not saved, and one that is with all that it adds to the next ones."""
    each = [after - before for before, after in pairwise(ends)]
    # The first steps are slower than others in any run.
    touched = {step + later for step in SAVED for later in range(AFTER + 1)}
    unsaved = median(each[step - 1] for step in range(6, len(ends)) if step not in touched)
    alone = [step for step in SAVED if 5 <= step < len(ends) - AFTER]
    more = [sum(each[step - 1 : step + AFTER]) - (AFTER + 1) * unsaved for step in alone]
    return unsaved, unsaved + mean(more)
