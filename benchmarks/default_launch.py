"""What a whole run costs under the launcher with nothing asked for, beside the same script alone.

``python -m smd_agent script.py`` saves statistics of everything at steps 0, 1, 2, 3, 5, 10, 20, 50 and every 100th.
Both runs make their steps in turns. A run is all that its interpreter takes from its start to its end. Of a model of
GPT-2 small's size 40 steps are made, and 1,000 are reckoned from them: the beginning, the steps, of which some are
saved, and the end.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

from benchmarks.family import ROOT, clean_environment
from benchmarks.table import Row

SUBJECT = ROOT / "benchmarks" / "default_launch_subject.py"
STEPS = 1000
SAVED = (0, 1, 2, 3, 5, 10, 20, 50, *range(100, STEPS, 100))
# Of a step that is saved a part is written while the next ones run.
AFTER = 2
LARGE_STEPS = 40
TARGET = 1.02


@dataclass
class Run:
    """One run, its seconds: to its first step, of each step, and from the last one to its end."""

    begin: float = 0.0
    steps: list[float] = field(default_factory=list)
    end: float = 0.0

    @property
    def whole(self) -> float:
        """All of it."""
        return self.begin + sum(self.steps) + self.end


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
    taken = [pair("cnn", STEPS) for _ in range(3)]
    yield whole(f"default launch, small CNN, {STEPS:,} steps", [[run.whole for run in runs] for runs in taken])
    yield from parts(taken)
    taken = [pair("gpt2", LARGE_STEPS) for _ in range(2)]
    what = f"default launch, GPT-2 small's size, {STEPS:,} steps, reckoned from {LARGE_STEPS}"
    yield whole(what, [[reckoned(run, *steps_of(runs)[which]) for which, run in enumerate(runs)] for runs in taken])
    yield from parts(taken)


def whole(what: str, seconds: Sequence[Sequence[float]]) -> Row:
    """Return the row of whole runs, given those alone and ours."""
    plain, ours = (median(pair[which] for pair in seconds) for which in (0, 1))
    ratio = median(pair[1] / pair[0] for pair in seconds)
    return Row(what, f"the script alone, {plain:.4g} s", f"{ours:.4g} s", ratio, TARGET)


def parts(taken: Sequence[Sequence[Run]]) -> Iterator[Row]:
    """Yield what the runs are made of."""
    plain, ours = (median(runs[which].begin + runs[which].steps[0] for runs in taken) for which in (0, 1))
    yield Row("– to the end of the first step", f"the script alone, {plain:.2f} s", f"{ours:.2f} s", ours / plain)
    (plain, _), (ours, saved) = ([mean(column) for column in zip(*every, strict=True)] for every in _both(taken))
    yield Row("– a step that is not saved", f"the script alone, {plain:.4f} s", f"{ours:.4f} s", ours / plain)
    yield Row("– a saved step", f"the script alone, {plain:.4f} s", f"{saved:.4f} s", saved / plain)


def _both(taken: Sequence[Sequence[Run]]) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    found = [steps_of(runs) for runs in taken]
    return [plain for plain, _ in found], [ours for _, ours in found]


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


def reckoned(run: Run, unsaved: float, saved: float) -> float:
    """Return what a run of all steps takes, in seconds, from a short one."""
    later = len(SAVED) - 1
    return run.begin + run.steps[0] + unsaved * (STEPS - 1 - later) + saved * later + run.end


def steps_of(runs: Sequence[Run]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return what a step takes that is not saved, and one that is with all that it adds to the next ones.

    Args:
        runs: the script alone, of which no step is saved, and ours.

    Returns:
        both of the script alone, and both of ours.
    """
    plain, ours = (run.steps for run in runs)
    # The first steps are slower than others in any run.
    touched = {step + later for step in SAVED for later in range(AFTER + 1)}
    quiet = [step for step in range(6, len(plain)) if step not in touched]
    alone = median(plain[step] for step in quiet)
    unsaved = alone * median(ours[step] / plain[step] for step in quiet)
    spaced = [a for a, b in pairwise((*SAVED, STEPS)) if a >= 5 and b - a > AFTER and a + AFTER < len(ours)]
    more = [sum(ours[step + i] - plain[step + i] for i in range(AFTER + 1)) for step in spaced]
    return (alone, alone), (unsaved, unsaved + median(more) - (AFTER + 1) * (unsaved - alone))
