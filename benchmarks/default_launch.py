"""What a whole run costs under the launcher with nothing asked for, beside the same script alone.

``python -m smd_agent script.py`` saves statistics of everything at steps 0, 1, 2, 3, 5, 10, 20, 50 and every 100th.
A run of 1,000 steps is reckoned from a shorter one: the beginning up to the end of the first step, the end, and the
saved steps. Their steps that are not saved are taken to be alike, and both runs make their steps in turns: two
processes differ by more than what is measured, and what such a step costs is measured by ``unsaved_step``.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.family import ROOT, clean_environment
from benchmarks.table import Row, milliseconds

SUBJECT = ROOT / "benchmarks" / "default_launch_subject.py"
STEPS = 1000
SAVED = (0, 1, 2, 3, 5, 10, 20, 50, *range(100, STEPS, 100))
# Of a step that is saved a part is written while the next ones run.
AFTER = 2
# Steps by which the machine's mood of the moment is known.
NEAR = 10
CASES = (
    # model, words, steps that are made, pairs of runs
    ("cnn", "small CNN", 420, 4),
    ("gpt2", "GPT-2 small's size", 60, 2),
)
TARGET = 1.02


@dataclass
class Run:
    """One run, its seconds: to its first step, of each step, and from the last one to its end."""

    begin: float = 0.0
    steps: list[float] = field(default_factory=list)
    end: float = 0.0


class Process:
    """A run that makes a step when it is told to.

    Args:
        name: of the model.
        out: the folder of what is saved; None: without the agent.
    """

    def __init__(self, name: str, out: str | None) -> None:
        words = [sys.executable, "-W", "ignore"]
        if out is not None:
            words += ["-m", "smd_agent", "--out", out]
        self.run = Run()
        start = time.perf_counter()
        self._process = subprocess.Popen(
            [*words, str(SUBJECT), name],
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._answer()
        self.run.begin = time.perf_counter() - start

    def step(self) -> None:
        """Make one step."""
        assert self._process.stdin is not None
        start = time.perf_counter()
        print(file=self._process.stdin, flush=True)
        self._answer()
        self.run.steps.append(time.perf_counter() - start)

    def end(self) -> None:
        """End it."""
        start = time.perf_counter()
        self._process.communicate()
        self.run.end = time.perf_counter() - start

    def _answer(self) -> None:
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RuntimeError("the script has ended")


def rows() -> Iterator[Row]:
    """Yield the whole run of each model, and what it is made of."""
    for name, words, steps, pairs in CASES:
        taken = [pair(name, steps) for _ in range(pairs)]
        unsaved, saved = (median(column) for column in zip(*(steps_of(ours) for _, ours in taken), strict=True))
        begin, own_begin = (median(runs[which].begin + runs[which].steps[0] for runs in taken) for which in (0, 1))
        end, own_end = (median(runs[which].end for runs in taken) for which in (0, 1))
        plain = begin + unsaved * (STEPS - 1) + end
        ours = own_begin + unsaved * (STEPS - len(SAVED)) + saved * (len(SAVED) - 1) + own_end
        what = f"default launch, {words}, {STEPS:,} steps, reckoned from {steps}"
        yield Row(what, f"the script alone, {plain:.4g} s", f"{ours:.4g} s", ours / plain, TARGET)
        what = "– to the end of the first step"
        yield Row(what, f"the script alone, {begin:.2f} s", f"{own_begin:.2f} s", own_begin / begin)
        floor = f"one that is not, {milliseconds(unsaved)}"
        yield Row("– a saved step", floor, milliseconds(saved), saved / unsaved)


def pair(name: str, steps: int) -> tuple[Run, Run]:
    """Run the script alone and under the launcher, in turns; return both in this order."""
    with tempfile.TemporaryDirectory() as folder:
        processes = [Process(name, None), Process(name, str(Path(folder) / "run"))]
        order = [*processes]
        shuffle = random.Random(os.urandom(8)).shuffle
        for _ in range(steps):
            shuffle(order)
            for process in order:
                process.step()
        for process in processes:
            process.end()
    return processes[0].run, processes[1].run


def steps_of(run: Run) -> tuple[float, float]:
    """Return what a step takes that is not saved, and one that is with all that it adds to the next ones."""
    touched = {step + later for step in SAVED for later in range(AFTER + 1)}
    # The first steps are slower than others in any run.
    quiet = [step for step in range(5, len(run.steps)) if step not in touched]
    spaced = [a for a, b in pairwise((*SAVED, STEPS)) if a >= 5 and b - a > AFTER and a + AFTER < len(run.steps)]
    more = []
    for step in spaced:
        distances = sorted((abs(other - step), other) for other in quiet)
        beside = median(run.steps[other] for _, other in distances[:NEAR])
        more.append(sum(run.steps[step : step + AFTER + 1]) - (AFTER + 1) * beside)
    unsaved = median(run.steps[step] for step in quiet)
    return unsaved, unsaved + median(more)
