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


def rows() -> Iterator[Row]:
    """Yield the whole run of each model, and the size of a saved step of the large one."""
    with tempfile.TemporaryDirectory() as folder:
        taken = [runs("cnn", STEPS, Path(folder)) for _ in range(6)]
        plain, ours = (median(run[which]["whole"] for run in taken) for which in (0, 1))
        ratio = median(run[1]["whole"] / run[0]["whole"] for run in taken)
        floor = f"the script alone, {plain:.1f} s"
        yield Row(f"default launch, small CNN, {STEPS:,} steps", floor, f"{ours:.1f} s", ratio, TARGET)
        low, high = min(run[1]["whole"] for run in taken), max(run[1]["whole"] for run in taken)
        yield Row(f"– from {low:.1f} to {high:.1f} s in {len(taken)} runs; the first step", *first(taken))
    with tempfile.TemporaryDirectory() as folder:
        taken = [runs("gpt2", LARGE_STEPS, Path(folder)) for _ in range(2)]
        wholes = [(reckoned(plain["steps"]), reckoned(ours["steps"])) for plain, ours in taken]
        plain, ours = (mean(pair[which] for pair in wholes) for which in (0, 1))
        floor = f"the script alone, {plain:.0f} s"
        what = f"default launch, GPT-2 small's size, {STEPS:,} steps, reckoned from {LARGE_STEPS}"
        yield Row(what, floor, f"{ours:.0f} s", ours / plain, TARGET)
        quiet, saved = (mean(part(ours["steps"])[which] for _, ours in taken) for which in (0, 1))
        yield Row("– a saved step", f"one that is not, {quiet:.2f} s", f"{saved:.2f} s", saved / quiet)


def first(taken: Sequence[Sequence[dict[str, object]]]) -> tuple[str, str, float]:
    """Return the time to the end of the first step, alone and ours."""
    plain, ours = (median(run[which]["steps"][0] for run in taken) for which in (0, 1))  # type: ignore[index]
    return f"alone, {plain:.2f} s", f"{ours:.2f} s", ours / plain


def runs(name: str, steps: int, folder: Path) -> list[dict[str, object]]:
    """Run the script alone and under the launcher, the one after the other; return the times of both."""
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
        found[launched] = {"whole": time.time() - start, **json.loads(times.read_text())}
    return [found[False], found[True]]


def reckoned(ends: Sequence[float]) -> float:
    """Return what a run of all steps takes, in seconds, from the ends of the steps of a short one."""
    quiet, saved = part(ends)
    return ends[0] + quiet * (STEPS - len(SAVED)) + saved * (len(SAVED) - 1)


def part(ends: Sequence[float]) -> tuple[float, float]:
    """Return the mean of what a step takes that is not saved, and of one that is with all that follows from it."""
    lengths = [after - before for before, after in zip(ends, ends[1:], strict=False)]
    # The first steps, which are saved one after the other, are slower than others in any run.
    touched = {step + later for step in SAVED for later in range(AFTER + 1)}
    quiet = median(lengths[step - 1] for step in range(6, len(ends)) if step not in touched)
    alone = [step for step in SAVED if 5 <= step < len(ends) - AFTER]
    more = [sum(lengths[step - 1 : step + AFTER]) - (AFTER + 1) * quiet for step in alone]
    return quiet, quiet + mean(more)
