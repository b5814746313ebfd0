"""What rules that look on cost the training: the process beside it asks nothing of the training, and takes little."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.family import Family, Sample, interleave, middle, pairwise
from benchmarks.table import Row, milliseconds
from benchmarks.unsaved_step import OPTIONS

CASES = (
    # workload, words, steps a window
    ("three_layers", "MLP of 3 layers", 10),
    ("cnn", "CNN of 13 modules", 3),
)
VARIANTS = ("ours", "ours_live", "ours")
GENERATIONS = 6
# Some seconds, so that there are looks among them.
WINDOWS = 600
# Of one processor.
SHARE = 0.05


def rows() -> Iterator[Row]:
    """Yield, for each model, the ratio of a step while all rules look on, and of two without them: the noise."""
    for workload, words, steps in CASES:
        taken = [_generation(workload, steps) for _ in range(GENERATIONS)]
        floor = median(one["floor"] for one in taken) / steps
        against = f"step without rules, {milliseconds(floor)}"
        for key, kind in (("cpu", "CPU time"), ("wall", "the clock")):
            for name, what in (("live", f"all rules look on, {words}, {kind}"), ("again", "– noise: without, twice")):
                ratios = [one[f"{name} {key}"] for one in taken]
                spread = f"; {min(ratios):.4f} to {max(ratios):.4f}"
                yield Row(what + spread, against, milliseconds(floor * median(ratios)), median(ratios))
        share = median(one["share"] for one in taken)
        limit = f"{SHARE:.0%} of one processor"
        yield Row("– the process beside it, after its start", limit, f"{share:.2%}", share / SHARE, 1.0)


def _generation(workload: str, steps: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, Family(workload, VARIANTS, Path(folder), options=OPTIONS) as workers:
        before, began = _used(), time.monotonic()
        without, live, again = interleave(workers, WINDOWS, "steps", steps)
        share = (_used() - before) / (time.monotonic() - began)
    ratios = {**_ratios("live", live, without), **_ratios("again", again, without)}
    return {"floor": middle(without, "cpu"), "share": share, **ratios}


def _ratios(name: str, samples: list[Sample], floor: list[Sample]) -> dict[str, float]:
    return {f"{name} {key}": pairwise(samples, floor, key) for key in ("cpu", "wall")}


def _used() -> float:
    """The seconds of a processor that the processes beside trainings have taken by now."""
    return sum(map(_ticks, filter(str.isdecimal, os.listdir("/proc")))) / os.sysconf("SC_CLK_TCK")


def _ticks(pid: str) -> int:
    try:
        if b"smd_agent.live" not in Path("/proc", pid, "cmdline").read_bytes():
            return 0
        fields = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])
    except OSError:
        return 0
